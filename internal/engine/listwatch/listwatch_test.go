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

	"github.com/rvinformer/informer/api"
	. "github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

func TestNext(t *testing.T) {
	now := time.Unix(1000, 0)
	start := Start{Known: "5"}
	page2 := Listing{Start: start, Continue: "c", Pages: 1, Mark: "c"}
	page3 := Listing{Start: start, Continue: "d", Pages: 2, Mark: "d"}
	watching := Watching{ResourceVersion: "7", Fresh: true}
	busy := Watching{ResourceVersion: "7"}
	struck := Watching{ResourceVersion: "7", Strikes: 1, StruckAt: moment.Of(now), StruckLast: moment.Of(now)}
	consistent := Start{Known: "5", Consistent: true}
	gone := Start{Known: "5", Consistent: true, Gone: true}
	unsure := Watching{ResourceVersion: "7", Unsure: true}
	struckUnsure := struck
	struckUnsure.Unsure = true
	relist := Start{Known: "7"}
	anew := Start{Known: "7", Consistent: true}
	stuck := page2
	stuck.StuckSince = now
	expired := Start{Known: "5", Consistent: true, Expiries: 1}
	expiredGone := expired
	expiredGone.Gone = true
	patient := Policy{InternalErrorRetry: 5 * time.Minute}
	streams := Policy{WatchList: true}
	restarts := Policy{NoResume: true}
	lists := Start{Known: "5", Failures: 1, Lists: true}
	failedOnce, failedTwice := Start{Known: "5", Failures: 1}, Start{Known: "5", Failures: 2}
	told := Start{Known: "5", BusySince: now}
	lastResort := Start{Known: "5", Failures: 2, Lists: true}
	endedOnce := Start{Known: "6", Failures: 1}
	refused := Watching{ResourceVersion: "7", RefusedSince: moment.Of(now)}
	refusedUnsure := refused
	refusedUnsure.Unsure = true
	polls := Start{Known: "7", RefusedSince: moment.Of(now)}
	polled := Watching{ResourceVersion: "8", Fresh: true, RefusedSince: moment.Of(now)}
	longAfter := now.Add(5 * time.Minute)
	for name, test := range map[string]struct {
		policy Policy
		state  State
		kind   Outcome
		want   Step
	}{
		"start, only page":           {state: start, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration, Progress: RequestProgress}},
		"start, first page":          {state: start, kind: Outcome{Kind: PageRead, Continue: "c", Shown: true}, want: Step{State: page2, Progress: RequestProgress}},
		"start, first page, empty":   {state: start, kind: Outcome{Kind: PageRead, Continue: "c"}, want: Step{State: page2, Progress: RequestProgress, Pause: RetryPause}},
		"start, failed":              {state: start, kind: Outcome{Kind: Failed}, want: Step{State: start, Effect: AbandonGeneration, Pause: RetryPause}},
		"start, failed after some":   {state: start, kind: Outcome{Kind: Failed, Shown: true}, want: Step{State: consistent, Effect: AbandonGeneration, Pause: RetryPause}},
		"start, told to wait":        {state: start, kind: Outcome{Kind: Failed, Refused: true, RetryAfter: time.Second}, want: Step{State: start, Effect: AbandonGeneration, Pause: AskedPause, RetryAfter: time.Second}},
		"start, expired":             {state: start, kind: Outcome{Kind: Expired}, want: Step{State: expired, Effect: AbandonGeneration}},
		"start, expired again":       {state: expired, kind: Outcome{Kind: Expired}, want: Step{State: Start{Known: "5", Consistent: true, Expiries: 2}, Effect: AbandonGeneration, Pause: RetryPause}},
		"start, too large":           {state: start, kind: Outcome{Kind: TooLarge}, want: Step{State: gone, Effect: AbandonGeneration}},
		"start, too large again":     {state: consistent, kind: Outcome{Kind: TooLarge}, want: Step{State: gone, Effect: AbandonGeneration, Pause: RetryPause}},
		"start, unproven":            {state: start, kind: Outcome{Kind: Unproven}, want: Step{State: start, Effect: AbandonGeneration, Pause: ListPause}},
		"start, unproven, shown":     {state: start, kind: Outcome{Kind: Unproven, Shown: true}, want: Step{State: consistent, Effect: AbandonGeneration, Pause: ListPause}},
		"page, unproven":             {state: page2, kind: Outcome{Kind: Unproven, Shown: true}, want: Step{State: consistent, Effect: AbandonGeneration, Pause: ListPause}},
		"start, bad request":         {state: start, kind: Outcome{Kind: BadRequest}, want: Step{State: start, Effect: AbandonGeneration, Pause: RetryPause}},
		"page, next":                 {state: page2, kind: Outcome{Kind: PageRead, Continue: "d", Shown: true}, want: Step{State: page3, Progress: RequestProgress}},
		"page, the one after that":   {state: page3, kind: Outcome{Kind: PageRead, Continue: "e", Shown: true}, want: Step{State: Listing{Start: start, Continue: "e", Pages: 3, Mark: "d"}, Progress: RequestProgress}},
		"page, last":                 {state: page2, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration, Progress: RequestProgress}},
		"page, failed":               {state: page2, kind: Outcome{Kind: Failed, At: now}, want: Step{State: stuck, Pause: RetryPause}},
		"page, fails on":             {state: stuck, kind: Outcome{Kind: Failed, At: now.Add(time.Minute)}, want: Step{State: stuck, Pause: RetryPause}},
		"page, fails for ever":       {state: stuck, kind: Outcome{Kind: Failed, At: now.Add(5 * time.Minute)}, want: Step{State: expired, Effect: AbandonGeneration, Pause: ListPause}},
		"page, read after failures":  {state: stuck, kind: Outcome{Kind: PageRead, Continue: "d", Shown: true}, want: Step{State: page3, Progress: RequestProgress}},
		"page, expired":              {state: page2, kind: Outcome{Kind: Expired}, want: Step{State: expired, Effect: AbandonGeneration}},
		"page, expired twice":        {state: Listing{Start: expired, Continue: "c"}, kind: Outcome{Kind: Expired}, want: Step{State: Start{Known: "5", Consistent: true, Expiries: 2}, Effect: AbandonGeneration}},
		"page, circular":             {state: page2, kind: Outcome{Kind: Circular}, want: Step{State: expired, Effect: AbandonGeneration, Pause: ListPause}},
		"page, expired thrice":       {state: Listing{Start: Start{Expiries: 2}, Continue: "c"}, kind: Outcome{Kind: Expired}, want: Step{State: Start{Consistent: true, Expiries: 3}, Effect: AbandonGeneration, Pause: ListPause}},
		"page, too large":            {state: page2, kind: Outcome{Kind: TooLarge}, want: Step{State: gone, Effect: AbandonGeneration}},
		"page, too large again":      {state: Listing{Start: consistent, Continue: "c"}, kind: Outcome{Kind: TooLarge}, want: Step{State: expiredGone, Effect: AbandonGeneration, Pause: ListPause}},
		"page, bad request":          {state: page2, kind: Outcome{Kind: BadRequest}, want: Step{State: expired, Effect: AbandonGeneration, Pause: ListPause}},
		"watch, ended":               {state: busy, kind: Outcome{Kind: WatchEnded, Lasted: Steady}, want: Step{State: busy, Progress: WatchProgress}},
		"watch, ended after a turn":  {state: busy, kind: Outcome{Kind: WatchEnded, Lasted: Turn}, want: Step{State: busy, Progress: RequestProgress}},
		"watch, cut after a turn":    {state: busy, kind: Outcome{Kind: WatchEnded, Lasted: Turn, Doubtful: true}, want: Step{State: unsure, Progress: RequestProgress}},
		"watch, ended soon":          {state: busy, kind: Outcome{Kind: WatchEnded, Lasted: Turn - 1}, want: Step{State: unsure, Pause: TurnPause, RetryAfter: 1}},
		"watch, told and ended soon": {state: busy, kind: Outcome{Kind: WatchEnded, Lasted: time.Second, Moved: true}, want: Step{State: unsure, Progress: RequestProgress, Pause: TurnPause, RetryAfter: Turn - time.Second}},
		"watch, told and ended":      {state: busy, kind: Outcome{Kind: WatchEnded, Lasted: time.Second - 1, Moved: true}, want: Step{State: unsure, Pause: TurnPause, RetryAfter: Turn - time.Second + 1}},
		"watch, stalled soon":        {state: busy, kind: Outcome{Kind: Stalled, Lasted: Steady - 1}, want: Step{State: unsure, Pause: RetryPause}},
		"watch, stalled":             {state: busy, kind: Outcome{Kind: Stalled, Lasted: Steady}, want: Step{State: busy, Progress: WatchProgress}},
		"watch, no version, ended":   {state: Watching{}, kind: Outcome{Kind: WatchEnded}, want: Step{State: Start{}}},
		"watch, no version, at once": {state: Watching{Fresh: true}, kind: Outcome{Kind: WatchEnded}, want: Step{State: Start{}, Pause: ListPause}},
		"watch, no version, steady":  {state: Watching{Fresh: true}, kind: Outcome{Kind: WatchEnded, Lasted: Steady}, want: Step{State: Start{}, Progress: WatchProgress}},
		"watch, no version, failed":  {state: Watching{ResourceVersion: "0"}, kind: Outcome{Kind: Failed}, want: Step{State: Start{}, Pause: ListPause}},
		"watch, lost, ended":         {state: Watching{ResourceVersion: "7", Lost: true}, kind: Outcome{Kind: WatchEnded}, want: Step{State: relist}},
		"watch, lost, ended at once": {state: Watching{ResourceVersion: "7", Lost: true, Fresh: true}, kind: Outcome{Kind: WatchEnded}, want: Step{State: relist, Pause: ListPause}},
		"watch, distrusted":          {state: Watching{ResourceVersion: "7", Distrusted: true}, kind: Outcome{Kind: WatchEnded}, want: Step{State: anew}},
		"watch, distrusted at once":  {state: Watching{ResourceVersion: "7", Distrusted: true, Fresh: true}, kind: Outcome{Kind: WatchEnded}, want: Step{State: anew, Pause: ListPause}},
		"watch, distrusted, failed":  {state: Watching{ResourceVersion: "7", Distrusted: true}, kind: Outcome{Kind: Failed}, want: Step{State: anew, Pause: ListPause}},
		"watch, distrusted, steady":  {state: Watching{ResourceVersion: "7", Distrusted: true}, kind: Outcome{Kind: Expired, Lasted: Steady}, want: Step{State: anew, Progress: WatchProgress}},
		"watch, lost, failed":        {state: Watching{ResourceVersion: "7", Lost: true}, kind: Outcome{Kind: Failed}, want: Step{State: Watching{ResourceVersion: "7", Lost: true, Unsure: true}, Pause: RetryPause}},
		"watch, cut":                 {state: busy, kind: Outcome{Kind: WatchEnded, Lasted: Steady, Doubtful: true}, want: Step{State: unsure, Progress: WatchProgress}},
		"watch, unsure, down":        {state: unsure, kind: Outcome{Kind: Failed, Doubtful: true}, want: Step{State: unsure, Pause: RetryPause}},
		"watch, unsure, restored":    {state: unsure, kind: Outcome{Kind: TooLarge}, want: Step{State: Start{Known: "7", Consistent: true, Gone: true}, Pause: ListPause}},
		"watch, failed":              {state: busy, kind: Outcome{Kind: Failed}, want: Step{State: unsure, Pause: RetryPause}},
		"watch, told to wait":        {state: busy, kind: Outcome{Kind: Failed, Refused: true, RetryAfter: time.Second}, want: Step{State: unsure, Pause: AskedPause, RetryAfter: time.Second}},
		"watch, told to wait in it":  {state: busy, kind: Outcome{Kind: Failed, RetryAfter: time.Second}, want: Step{State: unsure, Pause: RetryPause, RetryAfter: time.Second}},
		"watch, expired":             {state: busy, kind: Outcome{Kind: Expired}, want: Step{State: relist}},
		"watch, no resume, ended":    {policy: restarts, state: busy, kind: Outcome{Kind: WatchEnded}, want: Step{State: relist}},
		"watch, no resume, at once":  {policy: restarts, state: watching, kind: Outcome{Kind: WatchEnded}, want: Step{State: relist, Pause: ListPause}},
		"watch, no resume, steady":   {policy: restarts, state: watching, kind: Outcome{Kind: WatchEnded, Lasted: Steady}, want: Step{State: relist, Progress: WatchProgress}},
		"watch, no resume, failed":   {policy: restarts, state: busy, kind: Outcome{Kind: Failed}, want: Step{State: relist, Pause: ListPause}},
		"watch, no resume, broken":   {policy: restarts, state: busy, kind: Outcome{Kind: WatchBroken, At: now}, want: Step{State: relist, Pause: ListPause}},
		"watch, expired before":      {state: Watching{ResourceVersion: "7", Before: "6"}, kind: Outcome{Kind: Expired, Forgotten: true}, want: Step{State: unsure, Pause: RetryPause}},
		"watch, expired later":       {state: Watching{ResourceVersion: "7", Before: "6"}, kind: Outcome{Kind: Expired}, want: Step{State: relist}},
		"watch, expired, expected":   {state: Watching{ResourceVersion: "7", Before: "6", Shared: true}, kind: Outcome{Kind: Expired, Forgotten: true}, want: Step{State: relist}},
		"watch, expired, bookmark":   {state: Watching{ResourceVersion: "7", Before: "6", Bookmarks: 1}, kind: Outcome{Kind: Expired}, want: Step{State: relist}},
		"watch, expired at once":     {state: watching, kind: Outcome{Kind: Expired}, want: Step{State: relist, Pause: ListPause}},
		"watch, told and expired":    {state: watching, kind: Outcome{Kind: Expired, Lasted: Steady - 1, Moved: true}, want: Step{State: relist, Progress: RequestProgress, Pause: ListPause}},
		"watch, expired in the end":  {state: watching, kind: Outcome{Kind: Expired, Lasted: Steady}, want: Step{State: relist, Progress: WatchProgress}},
		"watch, too large":           {state: busy, kind: Outcome{Kind: TooLarge}, want: Step{State: Start{Known: "7", Consistent: true, Gone: true}, Pause: ListPause}},
		"watch, bad request":         {state: busy, kind: Outcome{Kind: BadRequest}, want: Step{State: Start{Known: "7", Consistent: true}, Pause: ListPause}},
		"watch, broken":              {state: busy, kind: Outcome{Kind: WatchBroken, At: now}, want: Step{State: struckUnsure, Pause: RetryPause}},
		"watch, too short":           {state: busy, kind: Outcome{Kind: WatchTooShort, At: now}, want: Step{State: struckUnsure, Pause: RetryPause}},
		"watch, broken twice":        {state: struck, kind: Outcome{Kind: WatchBroken, At: now.Add(time.Second)}, want: Step{State: relist, Pause: ListPause}},
		"watch, broken much later": {state: struck, kind: Outcome{Kind: WatchBroken, At: now.Add(3 * time.Minute)},
			want: Step{State: Watching{ResourceVersion: "7", Unsure: true, Strikes: 1, StruckAt: moment.Of(now.Add(3 * time.Minute)), StruckLast: moment.Of(now.Add(3 * time.Minute))}, Pause: RetryPause}},
		"watch, internal error": {policy: patient, state: struck, kind: Outcome{Kind: WatchBroken, Internal: true, At: now.Add(time.Minute)},
			want: Step{State: Watching{ResourceVersion: "7", Unsure: true, Strikes: 2, StruckAt: moment.Of(now), StruckLast: moment.Of(now.Add(time.Minute))}, Pause: RetryPause}},
		"watch, internal error too long": {policy: patient, state: Watching{ResourceVersion: "7", Strikes: 6, StruckAt: moment.Of(now), StruckLast: moment.Of(now.Add(4 * time.Minute))}, kind: Outcome{Kind: WatchBroken, Internal: true, At: now.Add(5 * time.Minute)}, want: Step{State: relist, Pause: ListPause}},
		"watch, refused":                 {state: busy, kind: Outcome{Kind: NoWatch, Refused: true, At: now}, want: Step{State: refusedUnsure, Pause: RetryPause}},
		"watch, refused again":           {state: refused, kind: Outcome{Kind: NoWatch, Refused: true, At: longAfter.Add(-1)}, want: Step{State: refusedUnsure, Pause: RetryPause}},
		"watch, refused for long":        {state: refused, kind: Outcome{Kind: NoWatch, Refused: true, At: longAfter}, want: Step{State: polls, Pause: ListPause, Polls: true}},
		"watch, refused, then away":      {state: refused, kind: Outcome{Kind: Failed, Refused: true, At: longAfter}, want: Step{State: refusedUnsure, Pause: RetryPause}},
		"watch, refused, then busy":      {state: refused, kind: Outcome{Kind: Failed, Refused: true, RetryAfter: time.Second, At: longAfter}, want: Step{State: refusedUnsure, Pause: AskedPause, RetryAfter: time.Second}},
		"watch, refused, then opened":    {state: refused, kind: Outcome{Kind: WatchEnded, Lasted: Steady}, want: Step{State: busy, Progress: WatchProgress}},
		"watch, refused, then expired":   {state: refused, kind: Outcome{Kind: Expired, Refused: true, At: longAfter}, want: Step{State: polls}},
		"watch, refused, no version":     {state: Watching{Fresh: true}, kind: Outcome{Kind: NoWatch, Refused: true, At: now}, want: Step{State: Start{RefusedSince: moment.Of(now)}, Pause: ListPause}},
		"watch, refused long, unversion": {state: Watching{Fresh: true, RefusedSince: moment.Of(now)}, kind: Outcome{Kind: NoWatch, Refused: true, At: longAfter}, want: Step{State: Start{RefusedSince: moment.Of(now)}, Pause: ListPause, Polls: true}},
		"polls, only page":               {state: polls, kind: Outcome{Kind: PageRead, ResourceVersion: "8"}, want: Step{State: polled, Effect: CompleteGeneration, Progress: RequestProgress}},
		"polls, watch-list read":         {policy: streams, state: polls, kind: Outcome{Kind: PageRead, ResourceVersion: "8"}, want: Step{State: polled, Effect: CompleteGeneration, Progress: RequestProgress}},
		"polls, failed":                  {state: polls, kind: Outcome{Kind: Failed, Refused: true, At: longAfter}, want: Step{State: polls, Effect: AbandonGeneration, Pause: RetryPause}},
		"polls, last page":               {state: Listing{Start: polls, Continue: "c", Pages: 1}, kind: Outcome{Kind: PageRead, ResourceVersion: "8"}, want: Step{State: polled, Effect: CompleteGeneration, Progress: RequestProgress}},
		"watch-list, read":               {policy: streams, state: start, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration, Progress: RequestProgress}},
		"watch-list, failed":             {policy: streams, state: start, kind: Outcome{Kind: Failed}, want: Step{State: failedOnce, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, failed twice":       {policy: streams, state: failedOnce, kind: Outcome{Kind: Failed}, want: Step{State: lastResort, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, told to wait":       {policy: streams, state: start, kind: Outcome{Kind: Failed, Refused: true, RetryAfter: time.Second, At: now}, want: Step{State: told, Effect: AbandonGeneration, Pause: AskedPause, RetryAfter: time.Second}},
		"watch-list, told again to wait": {policy: streams, state: told, kind: Outcome{Kind: Failed, Refused: true, RetryAfter: time.Second, At: now.Add(5*time.Minute - 1)}, want: Step{State: told, Effect: AbandonGeneration, Pause: AskedPause, RetryAfter: time.Second}},
		"watch-list, told for long":      {policy: streams, state: told, kind: Outcome{Kind: Failed, Refused: true, RetryAfter: time.Second, At: now.Add(5 * time.Minute)}, want: Step{State: Start{Known: "5", BusySince: now, Lists: true}, Effect: AbandonGeneration, Pause: AskedPause, RetryAfter: time.Second}},
		"watch-list, told, then failed":  {policy: streams, state: told, kind: Outcome{Kind: Failed, At: now.Add(5 * time.Minute)}, want: Step{State: failedOnce, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, told in the stream": {policy: streams, state: start, kind: Outcome{Kind: EndedEarly, ResourceVersion: "5", RetryAfter: time.Second, At: now}, want: Step{State: failedOnce, Effect: AbandonGeneration, Pause: RetryPause, RetryAfter: time.Second}},
		"watch-list, bad request":        {policy: streams, state: start, kind: Outcome{Kind: BadRequest}, want: Step{State: lists, Effect: AbandonGeneration}},
		"watch-list, refused":            {policy: streams, state: start, kind: Outcome{Kind: NoWatchList}, want: Step{State: lists, Effect: AbandonGeneration}},
		"watch-list, refused, may wait":  {policy: streams, state: start, kind: Outcome{Kind: NoWatchList, Refused: true, RetryAfter: time.Second}, want: Step{State: lists, Effect: AbandonGeneration, Pause: AskedPause, RetryAfter: time.Second}},
		"watch-list, refused on and on":  {policy: streams, state: failedTwice, kind: Outcome{Kind: NoWatchList}, want: Step{State: Start{Known: "5", Failures: 3, Lists: true}, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, too large":          {policy: streams, state: start, kind: Outcome{Kind: TooLarge}, want: Step{State: gone, Effect: AbandonGeneration}},
		"watch-list, unproven":           {policy: streams, state: start, kind: Outcome{Kind: Unproven}, want: Step{State: Start{Known: "5", Failures: 1, Consistent: true}, Effect: AbandonGeneration, Pause: ListPause}},
		"watch-list, unproven, shown":    {policy: streams, state: start, kind: Outcome{Kind: Unproven, Shown: true}, want: Step{State: Start{Known: "5", Failures: 1, Consistent: true}, Effect: AbandonGeneration, Pause: ListPause}},
		"watch-list, expired":            {policy: streams, state: start, kind: Outcome{Kind: Expired}, want: Step{State: consistent, Effect: AbandonGeneration}},
		"watch-list, too large again":    {policy: streams, state: consistent, kind: Outcome{Kind: TooLarge}, want: Step{State: gone, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, ended early":        {policy: streams, state: start, kind: Outcome{Kind: EndedEarly, ResourceVersion: "6", Shown: true}, want: Step{State: endedOnce, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, shown and refused":  {policy: streams, state: start, kind: Outcome{Kind: NoWatchList, ResourceVersion: "6", Shown: true}, want: Step{State: Start{Known: "6", Failures: 1, Lists: true}, Effect: AbandonGeneration}},
		"watch-list, shown and failed":   {policy: streams, state: start, kind: Outcome{Kind: Failed, ResourceVersion: "6", Shown: true}, want: Step{State: Start{Known: "6", Failures: 1}, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, ended, no order":    {policy: streams, state: start, kind: Outcome{Kind: EndedEarly, Shown: true}, want: Step{State: Start{Consistent: true, Failures: 1}, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, ended at once":      {policy: streams, state: Start{}, kind: Outcome{Kind: EndedEarly}, want: Step{State: Start{Failures: 1}, Effect: AbandonGeneration, Pause: RetryPause}},
		"watch-list, ended early twice":  {policy: streams, state: endedOnce, kind: Outcome{Kind: EndedEarly, ResourceVersion: "7", Shown: true}, want: Step{State: Start{Known: "7", Failures: 2, Lists: true}, Effect: AbandonGeneration}},
		"fallen back, page":              {policy: streams, state: lists, kind: Outcome{Kind: PageRead, Continue: "c", Shown: true}, want: Step{State: Listing{Start: lists, Continue: "c", Pages: 1, Mark: "c"}, Progress: RequestProgress, Fallback: true}},
		"fallen back, only page":         {policy: streams, state: lists, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration, Progress: RequestProgress, Fallback: true}},
		"fallen back, next page":         {policy: streams, state: Listing{Start: lists, Continue: "c", Pages: 1}, kind: Outcome{Kind: PageRead, ResourceVersion: "7"}, want: Step{State: watching, Effect: CompleteGeneration, Progress: RequestProgress}},
		"fallen back, failed":            {policy: streams, state: lists, kind: Outcome{Kind: Failed}, want: Step{State: failedOnce, Effect: AbandonGeneration, Pause: RetryPause}},
		"fallen back, bad request":       {policy: streams, state: lists, kind: Outcome{Kind: BadRequest}, want: Step{State: failedOnce, Effect: AbandonGeneration, Pause: RetryPause}},
		"fallen back, expired":           {policy: streams, state: Listing{Start: lists, Continue: "c"}, kind: Outcome{Kind: Expired}, want: Step{State: Start{Known: "5", Consistent: true, Expiries: 1, Failures: 1, Lists: true}, Effect: AbandonGeneration}},
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
		"pages, next":                {Policy{}, Listing{Start: known, Continue: "c"}, metav1.ListOptions{Limit: 500, Continue: "c"}},
		"whole, initial":             {Policy{Style: Full}, Start{}, metav1.ListOptions{ResourceVersion: "0"}},
		"whole, relist":              {Policy{Style: Full, PageSize: 10}, known, metav1.ListOptions{ResourceVersion: "5"}},
		"whole, consistent":          {Policy{Style: Full}, Start{Known: "5", Consistent: true}, metav1.ListOptions{}},
		"cache, initial":             {Policy{Style: CacheFirst}, Start{}, metav1.ListOptions{ResourceVersion: "0", Limit: 500}},
		"cache, relist":              {Policy{Style: CacheFirst}, known, metav1.ListOptions{ResourceVersion: "5"}},
		"cache, relist, page size":   {Policy{Style: CacheFirst, PageSize: 10}, known, metav1.ListOptions{ResourceVersion: "5", Limit: 10, ResourceVersionMatch: notOlder}},
		"cache, relist, cache pages": {cachePages, known, metav1.ListOptions{ResourceVersion: "5", Limit: 500, ResourceVersionMatch: notOlder}},
		"cache, consistent":          {Policy{Style: CacheFirst}, Start{Known: "5", Consistent: true}, metav1.ListOptions{Limit: 500}},
		"cache, expired twice":       {cachePages, Start{Known: "5", Consistent: true, Expiries: 2}, metav1.ListOptions{}},
		"cache, next":                {cachePages, Listing{Start: known, Continue: "c"}, metav1.ListOptions{Limit: 500, Continue: "c"}},
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

func TestWatchFromBeforeAVersionOfSeveralEvents(t *testing.T) {
	s := Watching{ResourceVersion: "5"}
	for _, step := range []struct {
		version       string
		bookmark      bool
		resume, claim string
	}{
		{"6", false, "5", "6"}, // no version has had two
		{"6", true, "6", "6"},
		{"7", true, "7", "7"},
		{"8", false, "7", "8"},
		{"8", false, "7", "7"},
		{"8", true, "7", "7"}, // a watch cache may send it between two events
		{"8", false, "7", "7"},
		{"8", true, "7", "7"},
		{"8", true, "8", "8"},
		{"9", false, "8", "8"},
		{"10", true, "9", "9"},
		{"11", false, "10", "10"},
	} {
		s, _ = s.Moved(step.version, step.bookmark)
		require.Equal(t, step.version, s.ResourceVersion)
		require.Equal(t, step.resume, s.Reached().Resume(), "%+v", step)
		require.Equal(t, step.claim, s.Reached().Claim(), "%+v", step)
		require.Equal(t, step.resume, Policy{}.WatchOptions(s, time.Minute).ResourceVersion)
	}
}

// Only a place is moved from, and only a version that is one moves it.
func TestMovesBetweenPlaces(t *testing.T) {
	for _, test := range []struct {
		at, to string
		want   bool
	}{
		{"7", "8", true},
		{"7", "7", true},
		{"7", "6", false},
		{"7", "0", false},
		{"7", "x", false},
		{"7", "", false},
		{"x", "y", true},
		{"x", "7", true},
		{"x", "0", false},
		{"x", "", false},
		{"", "7", false},
		{"", "x", false},
		{"0", "7", false},
	} {
		began := Watching{ResourceVersion: test.at, Strikes: 1}
		s, moved := began.Moved(test.to, false)
		require.Equal(t, test.want, moved, "%+v", test)
		if moved {
			require.Equal(t, test.to, s.ResourceVersion, "%+v", test)
		} else {
			require.Equal(t, began, s, "%+v", test)
		}
		require.Equal(t, test.at != "" && test.at != "0", s.HasPlace(), "%+v", test)
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
		{apierrors.NewUnauthorized("who"), Failed, EndedEarly},
		{apierrors.NewServiceUnavailable("down"), Failed, EndedEarly},
		{apierrors.NewTimeoutError("slow", 1), Failed, EndedEarly},
		{apierrors.NewForbidden(pods, "x", errors.New("no")), NoWatchList, EndedEarly},
		{apierrors.NewNotFound(pods, "x"), NoWatchList, EndedEarly},
		{apierrors.NewConflict(pods, "x", errors.New("no")), NoWatchList, EndedEarly},
		{apierrors.NewInternalError(errors.New("oh")), NoWatchList, EndedEarly},
	} {
		require.Equal(t, test.opening, ClassifyWatchList(test.err), "%v", test.err)
		require.Equal(t, test.initial, ClassifyInitialEvents(test.err), "%v", test.err)
	}
}

// A watch is refused where a list may be served.
func TestClassifyWatch(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	code := func(code int) error { return apierrors.NewGenericServerResponse(code, "get", pods, "", "", 0, false) }
	for want, errs := range map[Kind][]error{
		NoWatch: {
			apierrors.NewMethodNotSupported(pods, "watch"), apierrors.NewForbidden(pods, "x", errors.New("no")), apierrors.NewNotFound(pods, "x"),
			apierrors.NewConflict(pods, "x", errors.New("no")), apierrors.NewInternalError(errors.New("oh")),
			code(http.StatusNotAcceptable), code(http.StatusUnsupportedMediaType), code(http.StatusRequestedRangeNotSatisfiable), code(http.StatusNotImplemented),
			fmt.Errorf("open: %w", code(http.StatusTeapot)), errors.New("not watchable"), &api.BodyError{Watch: true, Err: errors.New("text/html")},
		},
		Failed: {
			apierrors.NewUnauthorized("who"), apierrors.NewTooManyRequests("busy", 0), apierrors.NewTooManyRequests("busy", 3), apierrors.NewServerTimeout(pods, "list", 5),
			code(http.StatusBadGateway), apierrors.NewServiceUnavailable("down"), apierrors.NewTimeoutError("slow", 1), code(http.StatusGatewayTimeout), code(http.StatusRequestTimeout),
			syscall.ECONNREFUSED, io.ErrUnexpectedEOF, &api.StallError{}, &api.CredentialError{Err: io.EOF},
		},
		Expired: {
			apierrors.NewResourceExpired("old"), apierrors.NewInternalError(errors.New("rpc error: code = OutOfRange desc = etcdserver: mvcc: required revision has been compacted")),
		},
		BadRequest: {apierrors.NewBadRequest("no"), apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil)},
		TooLarge:   {apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1)},
	} {
		for _, err := range errs {
			require.Equal(t, want, ClassifyWatch(err), "%v", err)
		}
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
		"unreadable version":  {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: `resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`}}, BadRequest, Outcome{Kind: WatchBroken, Internal: true, At: at}},
		"forbidden":           {apierrors.NewForbidden(pods, "x", errors.New("no")), Failed, broken},
		"internal error":      {apierrors.NewInternalError(errors.New("oh")), Failed, Outcome{Kind: WatchBroken, Internal: true, At: at}},
		"store read error":    {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Reason: metav1.StatusReasonStoreReadError}}, Failed, Outcome{Kind: Expired}},
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
		5 * time.Minute: apierrors.NewTooManyRequests("tomorrow", 86400),
	} {
		require.Equal(t, want, RetryAfter(err))
	}
	require.Zero(t, RetryAfter(nil))
}

// What a generation knows of its server stays when it begins again after a failure.
func TestFailedGenerationBeginsAsBefore(t *testing.T) {
	for name, start := range map[string]Start{
		"plain":              {Known: "5"},
		"consistent":         {Known: "5", Consistent: true},
		"token expired once": {Known: "5", Consistent: true, Expiries: 1},
	} {
		want := Step{State: start, Effect: AbandonGeneration, Pause: RetryPause}
		require.Equal(t, want, Policy{}.Next(start, Outcome{Kind: Failed}), name)
	}
}

// The failures of a server that is away say nothing of watch-lists.
func TestForgive(t *testing.T) {
	require.Equal(t, Start{Known: "5"}, Forgive(Start{Known: "5", Failures: 2, Lists: true}))
	listing := Listing{Start: Start{Failures: 1, Lists: true}, Continue: "c"}
	require.Equal(t, listing, Forgive(listing))
	require.Equal(t, Watching{ResourceVersion: "5"}, Forgive(Watching{ResourceVersion: "5", RefusedSince: moment.Of(time.Unix(1000, 0))}))
	require.Equal(t, Start{RefusedSince: moment.Of(time.Unix(1000, 0))}, Forgive(Start{RefusedSince: moment.Of(time.Unix(1000, 0))}))
}

// Where there is something to take back, the newest state of all is listed.
func TestStreams(t *testing.T) {
	policy := Policy{WatchList: true}
	for _, test := range []struct {
		start Start
		want  bool
	}{
		{Start{}, true},
		{Start{Known: "5", Failures: 1}, true},
		{Start{Consistent: true}, false},
		{Start{Known: "5", Consistent: true}, false},
		{Start{Lists: true}, false},
	} {
		require.Equal(t, test.want, policy.Streams(test.start), "%+v", test.start)
		require.False(t, Policy{}.Streams(test.start))
	}
	require.False(t, policy.Streams(Watching{ResourceVersion: "5"}))
}
