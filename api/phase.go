package api

// Phase is what an informer is doing. Its String is "idle", "listing" and so on.
type Phase int

const (
	// PhaseIdle: Run was not called yet, or looks for a checkpoint.
	PhaseIdle Phase = iota
	// PhaseListing: a list is being read.
	PhaseListing
	// PhaseWatching: a list was read, and changes are followed.
	PhaseWatching
	// PhaseBackoff: the last request failed; it will be tried again.
	PhaseBackoff
	// PhaseStopped: Run has returned.
	PhaseStopped
)

func (p Phase) String() string {
	switch p {
	case PhaseIdle:
		return "idle"
	case PhaseListing:
		return "listing"
	case PhaseWatching:
		return "watching"
	case PhaseBackoff:
		return "backoff"
	case PhaseStopped:
		return "stopped"
	}
	return "unknown"
}
