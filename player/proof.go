package player

// ProofText returns the text that a player signs to prove ownership of a key: the lines "voxeld session 1", the world's
// id and the server's nonce (Login.Nonce), with a line feed between them and none at the end. It includes the world so that a node
// of another world cannot relay the challenge.
func ProofText(nonce, worldID string) []byte {
	return []byte("voxeld session 1\n" + worldID + "\n" + nonce)
}
