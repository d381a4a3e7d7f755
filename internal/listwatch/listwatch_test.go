package listwatch_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	. "github.com/rvinformer/informer/internal/listwatch"
)

func TestNext(t *testing.T) {
	now := time.Unix(1000, 0)
	start := Start{Known: "5"}
	page2 := Listing{Start: start, Continue: "c"}
	watching := Watching{ResourceVersion: "7", Quiet: true}
	busy := Watching{ResourceVersion: "7"}
	struck := Watching{ResourceVersion: "7", Strikes: 1, StruckAt: now, StruckLast: now}
	consistent := Start{Known: "5", Consistent: true}
	unsure := Watching{ResourceVersion: "7", Unsure: true}
	struckUnsure := struck
	struckUnsure.Unsure = true
	relist := Start{Known: "7"}
	patient := Policy{InternalErrorRetry: 5 * time.Minute}
	streams := Policy{WatchList: true}
	lists := Start{Known: "5", Lists: true}
	endedOnce := Start{Known: "6", EarlyEnds: 1}
	for name, test := range map[string]struct {
		policy Policy
		state  State
		kind   Outcome
		want   Step
	}{
		"start, only page":          {state: start, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration}},
		"start, first page":         {state: start, kind: Outcome{Kind: PageRead, Continue: "c"}, want: Step{State: page2}},
		"start, failed":             {state: start, kind: Outcome{Kind: Failed}, want: Step{State: start, Effect: AbandonGeneration, Pause: BackoffPause}},
		"start, expired":            {state: start, kind: Outcome{Kind: Expired}, want: Step{State: Start{Known: "5", Consistent: true, Expiries: 1}, Effect: AbandonGeneration}},
		"start, too large":          {state: start, kind: Outcome{Kind: TooLarge}, want: Step{State: consistent, Effect: AbandonGeneration}},
		"start, too large again":    {state: consistent, kind: Outcome{Kind: TooLarge}, want: Step{State: consistent, Effect: AbandonGeneration, Pause: BackoffPause}},
		"start, bad request":        {state: start, kind: Outcome{Kind: BadRequest}, want: Step{State: start, Effect: AbandonGeneration, Pause: BackoffPause}},
		"page, next":                {state: page2, kind: Outcome{Kind: PageRead, Continue: "d"}, want: Step{State: Listing{Start: start, Continue: "d"}}},
		"page, last":                {state: page2, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration}},
		"page, failed":              {state: page2, kind: Outcome{Kind: Failed}, want: Step{State: page2, Pause: BackoffPause}},
		"page, expired":             {state: page2, kind: Outcome{Kind: Expired}, want: Step{State: Start{Known: "5", Consistent: true, Expiries: 1}, Effect: AbandonGeneration}},
		"page, expired thrice":      {state: Listing{Start: Start{Expiries: 2}, Continue: "c"}, kind: Outcome{Kind: Expired}, want: Step{State: Start{Consistent: true, Expiries: 3}, Effect: AbandonGeneration, Pause: BackoffPause}},
		"page, too large":           {state: page2, kind: Outcome{Kind: TooLarge}, want: Step{State: consistent, Effect: AbandonGeneration}},
		"page, bad request":         {state: page2, kind: Outcome{Kind: BadRequest}, want: Step{State: start, Effect: AbandonGeneration, Pause: BackoffPause}},
		"watch, ended":              {state: busy, kind: Outcome{Kind: WatchEnded}, want: Step{State: busy}},
		"watch, stalled":            {state: busy, kind: Outcome{Kind: Stalled}, want: Step{State: busy}},
		"watch, no version, ended":  {state: Watching{}, kind: Outcome{Kind: WatchEnded}, want: Step{State: Start{}}},
		"watch, no version, failed": {state: Watching{ResourceVersion: "0"}, kind: Outcome{Kind: Failed}, want: Step{State: Start{}, Pause: BackoffPause}},
		"watch, lost, ended":        {state: Watching{ResourceVersion: "7", Lost: true}, kind: Outcome{Kind: WatchEnded}, want: Step{State: relist}},
		"watch, lost, failed":       {state: Watching{ResourceVersion: "7", Lost: true}, kind: Outcome{Kind: Failed}, want: Step{State: Watching{ResourceVersion: "7", Lost: true, Unsure: true}, Pause: BackoffPause}},
		"watch, cut":                {state: busy, kind: Outcome{Kind: WatchEnded, Doubtful: true}, want: Step{State: unsure}},
		"watch, unsure, down":       {state: unsure, kind: Outcome{Kind: Failed, Doubtful: true}, want: Step{State: unsure, Pause: BackoffPause}},
		"watch, unsure, restored":   {state: unsure, kind: Outcome{Kind: TooLarge}, want: Step{State: Start{Known: "7", Consistent: true}, Pause: BackoffPause}},
		"watch, failed":             {state: busy, kind: Outcome{Kind: Failed}, want: Step{State: unsure, Pause: BackoffPause}},
		"watch, expired":            {state: busy, kind: Outcome{Kind: Expired}, want: Step{State: relist}},
		"watch, expired at once":    {state: watching, kind: Outcome{Kind: Expired}, want: Step{State: relist, Pause: BackoffPause}},
		"watch, too large":          {state: busy, kind: Outcome{Kind: TooLarge}, want: Step{State: Start{Known: "7", Consistent: true}, Pause: BackoffPause}},
		"watch, bad request":        {state: busy, kind: Outcome{Kind: BadRequest}, want: Step{State: Start{Known: "7", Consistent: true}, Pause: BackoffPause}},
		"watch, broken":             {state: busy, kind: Outcome{Kind: WatchBroken, At: now}, want: Step{State: struckUnsure, Pause: BackoffPause}},
		"watch, too short":          {state: busy, kind: Outcome{Kind: WatchTooShort, At: now}, want: Step{State: struckUnsure, Pause: BackoffPause}},
		"watch, broken twice":       {state: struck, kind: Outcome{Kind: WatchBroken, At: now.Add(time.Second)}, want: Step{State: relist, Pause: BackoffPause}},
		"watch, broken much later": {state: struck, kind: Outcome{Kind: WatchBroken, At: now.Add(3 * time.Minute)},
			want: Step{State: Watching{ResourceVersion: "7", Unsure: true, Strikes: 1, StruckAt: now.Add(3 * time.Minute), StruckLast: now.Add(3 * time.Minute)}, Pause: BackoffPause}},
		"watch, internal error": {policy: patient, state: struck, kind: Outcome{Kind: WatchBroken, Internal: true, At: now.Add(time.Minute)},
			want: Step{State: Watching{ResourceVersion: "7", Unsure: true, Strikes: 2, StruckAt: now, StruckLast: now.Add(time.Minute)}, Pause: BackoffPause}},
		"watch, internal error too long": {policy: patient, state: Watching{ResourceVersion: "7", Strikes: 6, StruckAt: now, StruckLast: now.Add(4 * time.Minute)}, kind: Outcome{Kind: WatchBroken, Internal: true, At: now.Add(5 * time.Minute)}, want: Step{State: relist, Pause: BackoffPause}},
		"start, failed after some":       {state: start, kind: Outcome{Kind: Failed, Shown: true}, want: Step{State: consistent, Effect: AbandonGeneration, Pause: BackoffPause}},
		"watch-list, read":               {policy: streams, state: start, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration}},
		"watch-list, failed":             {policy: streams, state: start, kind: Outcome{Kind: Failed}, want: Step{State: start, Effect: AbandonGeneration, Pause: BackoffPause}},
		"watch-list, refused":            {policy: streams, state: start, kind: Outcome{Kind: BadRequest}, want: Step{State: lists, Effect: AbandonGeneration, Fallback: true}},
		"watch-list, no end":             {policy: streams, state: start, kind: Outcome{Kind: NoWatchList}, want: Step{State: lists, Effect: AbandonGeneration, Fallback: true}},
		"watch-list, too large":          {policy: streams, state: start, kind: Outcome{Kind: TooLarge}, want: Step{State: consistent, Effect: AbandonGeneration}},
		"watch-list, expired":            {policy: streams, state: start, kind: Outcome{Kind: Expired}, want: Step{State: consistent, Effect: AbandonGeneration}},
		"watch-list, too large again":    {policy: streams, state: consistent, kind: Outcome{Kind: TooLarge}, want: Step{State: consistent, Effect: AbandonGeneration, Pause: BackoffPause}},
		"watch-list, ended early":        {policy: streams, state: start, kind: Outcome{Kind: EndedEarly, ResourceVersion: "6", Shown: true}, want: Step{State: endedOnce, Effect: AbandonGeneration, Pause: BackoffPause}},
		"watch-list, ended, no order":    {policy: streams, state: start, kind: Outcome{Kind: EndedEarly, Shown: true}, want: Step{State: Start{Consistent: true, EarlyEnds: 1}, Effect: AbandonGeneration, Pause: BackoffPause}},
		"watch-list, ended at once":      {policy: streams, state: Start{}, kind: Outcome{Kind: EndedEarly}, want: Step{State: Start{EarlyEnds: 1}, Effect: AbandonGeneration, Pause: BackoffPause}},
		"watch-list, ended early twice":  {policy: streams, state: endedOnce, kind: Outcome{Kind: EndedEarly}, want: Step{State: Start{Known: "6", Consistent: true, Lists: true}, Effect: AbandonGeneration, Fallback: true}},
		"fallen back, page":              {policy: streams, state: lists, kind: Outcome{Kind: PageRead, Continue: "c"}, want: Step{State: Listing{Start: lists, Continue: "c"}}},
		"fallen back, expired":           {policy: streams, state: Listing{Start: lists, Continue: "c"}, kind: Outcome{Kind: Expired}, want: Step{State: Start{Known: "5", Consistent: true, Expiries: 1, Lists: true}, Effect: AbandonGeneration}},
		"watch, expired, tries again":    {policy: streams, state: busy, kind: Outcome{Kind: Expired}, want: Step{State: relist}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.policy.Next(test.state, test.kind)) })
	}
}

func TestListOptions(t *testing.T) {
	const notOlder = metav1.ResourceVersionMatchNotOlderThan
	known := Start{Known: "5"}
	cachePages := Policy{Style: CacheFirst, CachePaged: true}
	for name, test := range map[string]struct {
		policy Policy
		state  State
		want   metav1.ListOptions
	}{
		"pages, initial":             {Policy{}, Start{}, metav1.ListOptions{Limit: 500}},
		"pages, relist":              {Policy{PageSize: 10}, known, metav1.ListOptions{Limit: 10}},
		"pages, expired once":        {Policy{}, Start{Known: "5", Consistent: true, Expiries: 1}, metav1.ListOptions{Limit: 500}},
		"pages, expired twice":       {Policy{}, Start{Known: "5", Consistent: true, Expiries: 2}, metav1.ListOptions{}},
		"pages, next":                {Policy{}, Listing{known, "c"}, metav1.ListOptions{Limit: 500, Continue: "c"}},
		"whole, initial":             {Policy{Style: Full}, Start{}, metav1.ListOptions{ResourceVersion: "0"}},
		"whole, relist":              {Policy{Style: Full, PageSize: 10}, known, metav1.ListOptions{ResourceVersion: "5"}},
		"whole, consistent":          {Policy{Style: Full}, Start{Known: "5", Consistent: true}, metav1.ListOptions{}},
		"cache, initial":             {Policy{Style: CacheFirst}, Start{}, metav1.ListOptions{ResourceVersion: "0", Limit: 500}},
		"cache, relist":              {Policy{Style: CacheFirst}, known, metav1.ListOptions{ResourceVersion: "5"}},
		"cache, relist, page size":   {Policy{Style: CacheFirst, PageSize: 10}, known, metav1.ListOptions{ResourceVersion: "5", Limit: 10, ResourceVersionMatch: notOlder}},
		"cache, relist, cache pages": {cachePages, known, metav1.ListOptions{ResourceVersion: "5", Limit: 500, ResourceVersionMatch: notOlder}},
		"cache, consistent":          {Policy{Style: CacheFirst}, Start{Known: "5", Consistent: true}, metav1.ListOptions{Limit: 500}},
		"cache, expired twice":       {cachePages, Start{Known: "5", Consistent: true, Expiries: 2}, metav1.ListOptions{}},
		"cache, next":                {cachePages, Listing{known, "c"}, metav1.ListOptions{Limit: 500, Continue: "c"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.policy.ListOptions(test.state)) })
	}
	require.Panics(t, func() { Policy{}.ListOptions(Watching{}) })
}

func TestWatchOptions(t *testing.T) {
	want := metav1.ListOptions{ResourceVersion: "5", AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(7))}
	for _, style := range []Style{Paged, Full, CacheFirst} {
		require.Equal(t, want, Policy{Style: style}.WatchOptions(Watching{ResourceVersion: "5"}, 7900*time.Millisecond))
	}
}

func TestWatchListOptions(t *testing.T) {
	p := Policy{WatchList: true}
	require.True(t, p.Streams(Start{}))
	require.False(t, p.Streams(Start{Lists: true}))
	require.False(t, p.Streams(Listing{}))
	require.False(t, Policy{}.Streams(Start{}))
	want := metav1.ListOptions{
		ResourceVersion: "5", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, SendInitialEvents: ptr.To(true),
		AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(7)),
	}
	require.Equal(t, want, p.WatchListOptions(Start{Known: "5"}, 7900*time.Millisecond))
	want.ResourceVersion = ""
	require.Equal(t, want, p.WatchListOptions(Start{}, 7*time.Second))
}

func TestClassifyWatchList(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		err              error
		opening, initial Kind
	}{
		{apierrors.NewMethodNotSupported(pods, "watch"), NoWatchList, EndedEarly},
		{apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "get", pods, "", "", 0, false), NoWatchList, EndedEarly},
		{apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "x", nil), BadRequest, EndedEarly},
		{apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1), TooLarge, TooLarge},
		{apierrors.NewResourceExpired("old"), Expired, EndedEarly},
		{io.ErrUnexpectedEOF, Failed, EndedEarly},
		{apierrors.NewTooManyRequests("busy", 3), Failed, EndedEarly},
	} {
		require.Equal(t, test.opening, ClassifyWatchList(test.err), "%v", test.err)
		require.Equal(t, test.initial, ClassifyInitialEvents(test.err), "%v", test.err)
	}
}

func TestClassify(t *testing.T) {
	at := time.Unix(1000, 0)
	pods := schema.GroupResource{Resource: "pods"}
	withCause := func(cause metav1.StatusCause) error {
		err := apierrors.NewTimeoutError("slow", 1)
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, cause)
		return err
	}
	broken := Outcome{Kind: WatchBroken, At: at}
	for name, test := range map[string]struct {
		err    error
		want   Kind
		stream Outcome
	}{
		"expired":             {apierrors.NewResourceExpired("old"), Expired, Outcome{Kind: Expired}},
		"gone":                {apierrors.NewGone("old"), Expired, Outcome{Kind: Expired}},
		"too large, type":     {withCause(metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge}), TooLarge, Outcome{Kind: TooLarge}},
		"too large, cause":    {withCause(metav1.StatusCause{Message: "Too large resource version"}), TooLarge, Outcome{Kind: TooLarge}},
		"too large, message":  {apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1), TooLarge, Outcome{Kind: TooLarge}},
		"timeout":             {apierrors.NewTimeoutError("slow", 1), Failed, broken},
		"too many requests":   {apierrors.NewTooManyRequests("busy", 3), Failed, Outcome{Kind: Failed}},
		"bad request":         {apierrors.NewBadRequest("no"), BadRequest, broken},
		"invalid":             {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil), BadRequest, broken},
		"forbidden":           {apierrors.NewForbidden(pods, "x", errors.New("no")), Failed, broken},
		"internal error":      {apierrors.NewInternalError(errors.New("oh")), Failed, Outcome{Kind: WatchBroken, Internal: true, At: at}},
		"service unavailable": {apierrors.NewServiceUnavailable("down"), Failed, broken},
		"connection refused":  {syscall.ECONNREFUSED, Failed, broken},
		"end of file":         {io.ErrUnexpectedEOF, Failed, broken},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("list: %w", test.err), errors.Join(errors.New("list"), test.err)} {
				require.Equal(t, test.want, Classify(err), "%v", err)
				require.Equal(t, test.stream, ClassifyStream(err, at), "%v", err)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	unavailable := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "get", schema.GroupResource{}, "", "", 7, true)
	for want, err := range map[time.Duration]error{
		0:               io.EOF,
		3 * time.Second: apierrors.NewTooManyRequests("busy", 3),
		4 * time.Second: fmt.Errorf("list: %w", apierrors.NewTooManyRequests("busy", 4)),
		5 * time.Second: apierrors.NewServerTimeout(schema.GroupResource{}, "list", 5),
		7 * time.Second: unavailable,
	} {
		require.Equal(t, want, RetryAfter(err))
	}
	require.Zero(t, RetryAfter(nil))
}

// Where there is something to take back, the newest state of all is listed.
func TestStreams(t *testing.T) {
	policy := Policy{WatchList: true}
	for _, test := range []struct {
		start Start
		want  bool
	}{
		{Start{}, true},
		{Start{Known: "5", EarlyEnds: 1}, true},
		{Start{Consistent: true}, false},
		{Start{Known: "5", Consistent: true}, false},
		{Start{Lists: true}, false},
	} {
		require.Equal(t, test.want, policy.Streams(test.start), "%+v", test.start)
		require.False(t, Policy{}.Streams(test.start))
	}
	require.False(t, policy.Streams(Watching{ResourceVersion: "5"}))
}
