package api

// ListMode is how an informer reads a complete set. Its String is "auto", "paged", "full" or
// "watch-list".
type ListMode int

const (
	// ListModeAuto is ListModeWatchList, and ListModePaged where a watch-list does not work; that
	// is remembered for an hour, for the resource and the server of a
	// DynamicListerWatcherFactory.
	ListModeAuto ListMode = iota
	// ListModePaged lists consistent pages: the newest state, from resource version "", in pages
	// that all show it.
	ListModePaged
	// ListModeFull lists in one response, which the server may serve from its cache, but not older
	// than what is known.
	ListModeFull
	// ListModeWatchList opens a watch that begins with the set, object by object from the server's
	// cache, and goes on with it (sendInitialEvents, which a server has from 1.32 on). It needs a
	// ListerWatcher of a DynamicListerWatcherFactory. Where the server refuses it, does not say
	// for 10 s of silence that the set is complete, or ends two of them before it is, that set is
	// read as in ListModePaged. So it is where only the newest state will do, after a restore of
	// the server from a backup for instance; that is no Fallback.
	ListModeWatchList
)

func (m ListMode) String() string {
	switch m {
	case ListModeAuto:
		return "auto"
	case ListModePaged:
		return "paged"
	case ListModeFull:
		return "full"
	case ListModeWatchList:
		return "watch-list"
	}
	return "unknown"
}
