package report

// Phase is what an informer is doing.
type Phase int

// The phases. Status names them.
const (
	Idle Phase = iota
	Listing
	Watching
	Backoff
	Stopped
)

func (p Phase) String() string {
	switch p {
	case Idle:
		return "idle"
	case Listing:
		return "listing"
	case Watching:
		return "watching"
	case Backoff:
		return "backoff"
	case Stopped:
		return "stopped"
	}
	return "unknown"
}

// ListMode is how an informer reads a complete set.
type ListMode int

// The list modes. InformerConfig describes them.
const (
	Auto ListMode = iota
	Paged
	Full
	WatchList
)

// Economy is what Auto saves.
type Economy string

// The economies. InformerConfig describes them.
const (
	Server Economy = ""
	CPU    Economy = "cpu"
	Bytes  Economy = "bytes"
)

// Known reports whether e is one of the economies.
func (e Economy) Known() bool { return e == Server || e == CPU || e == Bytes }

func (m ListMode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Paged:
		return "paged"
	case Full:
		return "full"
	case WatchList:
		return "watch-list"
	}
	return "unknown"
}
