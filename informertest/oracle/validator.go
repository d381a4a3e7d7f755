package oracle

// Validator judges one guarantee.
type Validator struct {
	Name string
	// Doc is the guarantee, in a sentence or two.
	Doc   string
	Check func(*History) []*Violation
}

// Validators returns all of them. Each sees nothing but the History.
func Validators() []Validator {
	return []Validator{
		ordered(),
		unique(),
		reliable(),
		noFalseDelete(),
		authentic(),
		resumable(),
		bookmarkable(),
		initialList(),
		syncedDone(),
		memoryBound(),
		equal(),
		stored(),
		persistent(),
		paced(),
		confinedToShard(),
		redelivery(),
	}
}
