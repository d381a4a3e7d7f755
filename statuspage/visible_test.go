package statuspage_test

import (
	"errors"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/statuspage"
)

// A name that turns the direction of writing looks like another one, and a terminal obeys an
// escape. Both are shown as what they are, in the page, in JSON, which says the same, and by the
// health checks. What a form sends again stays as it is.
func TestHiddenCharactersAreShown(t *testing.T) {
	const cluster, message = "prod\u202edet\u2066", "\x1b[2Jall is well\u009b \u200b\U000e0041"
	page := statuspage.New()
	s := unreachable(time.Now())
	s.Synced, s.LastError, s.Condition.Message = false, errors.New(message), message
	page.Add(ofPods(cluster), with(s))
	quoted := regexp.QuoteMeta(`\u001b[2Jall is well\u009b \u200b\udb40\udc41`)
	hidden := regexp.MustCompile(`[\x1b\x{9b}\x{200b}\x{202e}\x{2066}\x{e0041}]`)

	for _, path := range []string{"/", "/informer/prod~E2~80~AEdet~E2~81~A6/_/v1/pods/dynamic", "/?format=json"} {
		text := get(t, page, http.StatusOK, path)
		require.Contains(t, text, `prod\u202edet\u2066`, path)
		require.Regexp(t, quoted, text, path)
		require.NotRegexp(t, hidden, text, path)
	}
	for _, path := range []string{"/readyz", "/readyz?verbose"} {
		text := get(t, page, http.StatusInternalServerError, path)
		require.Regexp(t, quoted, text)
		require.NotRegexp(t, hidden, text)
	}
	require.ErrorContains(t, page.Ready(nil), `\u001b[2Jall is well`)

	require.Equal(t, []string{cluster}, ask(t, page, "").clusters(), "JSON means the same")
	require.Equal(t, []string{cluster}, ask(t, page, "?cluster=prod%E2%80%AEdet%E2%81%A6").clusters())
	require.Equal(t, []string{cluster}, ask(t, page, "?q=%E2%80%AEdet").clusters())
	form := get(t, page, http.StatusOK, "/?cluster=prod%E2%80%AEdet%E2%81%A6")
	require.Contains(t, form, `<input type="hidden" name="cluster" value="`+cluster+`">`)
	require.Contains(t, form, `cluster <b>prod\u202edet\u2066</b>`)
}
