package player

// ProofText returns what a player signs to prove that a key is his: the lines
// "voxeld session 1", the world's id and the server's nonce, as text, with a line feed between them and none after.
// It names the world so that a node of another world cannot pass the challenge on.
func ProofText(nonce, worldID string) []byte {
	return []byte("voxeld session 1\n" + worldID + "\n" + nonce)
}
