package oracle

// Validator judges one guarantee.
type Validator struct {
	Name string
	// Doc is the guarantee, in a sentence.
	Doc   string
	Check func(*History) []*Violation
}

// Validators returns all of them. Each sees nothing but the History.
func Validators() []Validator {
	return []Validator{
		ordered(),
		equal(),
	}
}
