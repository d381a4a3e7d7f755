package race

// The ways to read a set, as the names of contestants have them.
const (
	WayWatchList  = "watch-list"
	WayPages      = "pages"
	WayPlainPages = "pages, not compressed"
	WayAuto       = "ListModeAuto"
)
