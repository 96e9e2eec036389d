package world

// The first byte of a log entry of a region, its tag, says what the entry is. It is stored: a number never gets another
// meaning.
const (
	tagOldBatch        = 1 // of development versions
	tagBarrier         = 2
	tagSplit           = 3
	tagMerge           = 4 // what begins or ends a merge, too
	tagBatch           = 5
	tagRollback        = 6 // of the changes of one player, or everybody
	tagTrim            = 7
	tagRollbackPlayers = 8 // of those of several players
	tagBatchSigns      = 9 // some edits are of signs with a text
	tagRollbackMarked  = 10
	tagMarks           = 11
	tagVacate          = 12
	tagBatchBulk       = 13 // some edits are bulk edits
	tagEffects         = 14 // of mods
	tagMod             = 15 // what a mod may do
)

// entries decode and apply the entries of each tag.
var entries = [256]func(l *Land, index uint64, entry []byte) (Outcome, error){
	tagBarrier:         (*Land).applyBarrier,
	tagSplit:           restructure((*Land).applySplit),
	tagMerge:           restructure((*Land).applyMerging),
	tagVacate:          restructure((*Land).applyVacate),
	tagBatch:           (*Land).applyEdits,
	tagBatchSigns:      (*Land).applyEdits,
	tagBatchBulk:       (*Land).applyEdits,
	tagRollback:        (*Land).applyRollback,
	tagRollbackPlayers: (*Land).applyRollback,
	tagRollbackMarked:  (*Land).applyRollback,
	tagTrim:            (*Land).applyTrim,
	tagMarks:           (*Land).applyMarks,
	tagEffects:         (*Land).applyAnswers,
	tagMod:             (*Land).applyMod,
}

// restructure applies entries that do nothing but change the region's structure.
func restructure(apply func(*Land, uint64, []byte) (Step, error)) func(*Land, uint64, []byte) (Outcome, error) {
	return func(l *Land, index uint64, entry []byte) (Outcome, error) {
		step, err := apply(l, index, entry)
		return Outcome{Step: step}, err
	}
}
