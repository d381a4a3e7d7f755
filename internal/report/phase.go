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
