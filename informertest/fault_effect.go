package informertest

// effectKind names what an effect does. Of several that would change one item, the first kind does.
type effectKind int

const (
	effectNone effectKind = iota
	effectRefuse
	effectReset
	effectHang
	effectCut
	effectSlow
	effectGarbage
	effectMistyped
	effectUnversioned
	effectOversize
	effectStatus
	effectErrorEvent
	effectNoBookmarks
	effectDropBookmarks
	effectIgnoreWatchList
	effectRefuseWatchList
	effectEndlessWatchList
	effectClose
	effectLag
	effectRepeat
	effectSwap
	effectLose
	effectRepeatToken
	effectForeign
	effectCorrupt
	effectWrongChecksum
	effectDelay
	effectGoAway
)

// effectTraits is what is known of a kind of effects.
type effectTraits struct {
	// word is its name in the text of a fault, followed by what form says. A status has a number.
	word string
	form effectForm
	// option is a word that may follow the number.
	option string
	// least and most are those of the number; most is maxCount where it is 0.
	least, most int
	// verbs are the requests that it can happen to, and underWay those that it still happens to
	// while they are answered.
	verbs, underWay []string
}

// effectForm says what follows the word of an effect.
type effectForm int

const (
	formWord       effectForm = iota // nothing
	formNumber                       // =N, or =N and an option
	formPlaceBytes                   // =N,BYTES
	formTime                         // =D
	formMaybeTime                    // nothing, or =D
)

var (
	reads      = []string{verbList, verbWatch, verbWatchList, verbGet}
	lists      = []string{verbList}
	watches    = []string{verbWatch, verbWatchList}
	watchLists = []string{verbWatchList}
)

// effects has the traits of each kind. Refuse has no verbs, because it happens to connections and not
// to requests.
var effects = [...]effectTraits{
	effectNone:             {word: "no effect"},
	effectRefuse:           {word: "refuse"},
	effectReset:            {word: "reset", verbs: reads},
	effectHang:             {word: "hang", verbs: reads, underWay: reads},
	effectCut:              {word: "cut", form: formNumber, option: "clean", verbs: reads, underWay: reads},
	effectSlow:             {word: "slow", form: formNumber, least: 1, verbs: reads, underWay: reads},
	effectGarbage:          {word: "garbage", form: formNumber, least: 1, verbs: usualVerbs, underWay: watches},
	effectMistyped:         {word: "mistyped", form: formNumber, least: 1, verbs: usualVerbs, underWay: watches},
	effectUnversioned:      {word: "unversioned", form: formNumber, least: 1, verbs: watches, underWay: watches},
	effectOversize:         {word: "oversize", form: formPlaceBytes, least: 1, verbs: usualVerbs, underWay: watches},
	effectStatus:           {word: "a status code", least: 400, most: 599, verbs: reads},
	effectErrorEvent:       {word: "error-event", form: formNumber, option: "late", least: 400, most: 599, verbs: watches, underWay: watches},
	effectNoBookmarks:      {word: "no-bookmarks", verbs: watches, underWay: watches},
	effectDropBookmarks:    {word: "drop-bookmarks", form: formNumber, least: 1, verbs: watches, underWay: watches},
	effectIgnoreWatchList:  {word: "ignore-watch-list", verbs: watchLists},
	effectRefuseWatchList:  {word: "refuse-watch-list", verbs: watchLists},
	effectEndlessWatchList: {word: "endless-watch-list", verbs: watchLists, underWay: watchLists},
	effectClose:            {word: "close", form: formMaybeTime, verbs: watches, underWay: watches},
	effectLag:              {word: "lag", verbs: reads, underWay: watches},
	effectRepeat:           {word: "repeat", form: formNumber, least: 1, verbs: watches, underWay: watches},
	effectSwap:             {word: "swap", form: formNumber, least: 1, verbs: watches, underWay: watches},
	effectLose:             {word: "lose", form: formNumber, least: 1, verbs: watches, underWay: watches},
	effectRepeatToken:      {word: "repeat-token", verbs: lists},
	effectForeign:          {word: "foreign", verbs: lists},
	effectCorrupt:          {word: "corrupt", form: formNumber, verbs: reads},
	effectWrongChecksum:    {word: "wrong-checksum", verbs: reads},
	effectDelay:            {word: "delay", form: formTime, verbs: usualVerbs, underWay: usualVerbs},
	effectGoAway:           {word: "goaway", form: formMaybeTime, verbs: reads},
}
