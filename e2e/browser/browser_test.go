package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is a Chromium without scripts that looks at a page.
type browser struct {
	t       *testing.T
	ctx     context.Context
	address string
}

// browse starts a Chromium. It needs no sandbox, because it opens nothing but the page.
func browse(t *testing.T, chromium string, page http.Handler) *browser {
	s := httptest.NewServer(page)
	t.Cleanup(s.Close)
	profile, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	t.Cleanup(func() { // Chromium's children may still write to it, which t.TempDir takes for a failure
		require.Eventually(t, func() bool { return os.RemoveAll(profile) == nil }, time.Minute, 100*time.Millisecond)
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
	)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx, address: s.URL}
	b.do(emulation.SetScriptExecutionDisabled(true))
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// open opens a path in a window of a size. A narrow one is that of a telephone.
func (b *browser) open(path string, width, height int64) {
	b.t.Helper()
	var options []chromedp.EmulateViewportOption
	if width < 600 {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateScale(2))
	}
	b.do(chromedp.EmulateViewport(width, height, options...), chromedp.Navigate(b.address+path))
}

func (b *browser) text(selector string) (text string) {
	b.t.Helper()
	b.do(chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// texts returns the texts of all elements of a selector.
func (b *browser) texts(selector string) (all []string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`Array.from(document.querySelectorAll('`+selector+`'), e => e.innerText)`, &all))
	return all
}

// click follows a link.
func (b *browser) click(selector string) {
	b.t.Helper()
	_, err := chromedp.RunResponse(b.ctx, chromedp.Click(selector, chromedp.ByQuery))
	require.NoError(b.t, err)
}

// send replaces the text of a field, and sends its form.
func (b *browser) send(selector, text string) {
	b.t.Helper()
	_, err := chromedp.RunResponse(b.ctx, chromedp.SetValue(selector, text, chromedp.ByQuery), chromedp.Submit(selector, chromedp.ByQuery))
	require.NoError(b.t, err)
}

// width is how wide what is shown is.
func (b *browser) width() (width int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`document.documentElement.scrollWidth`, &width))
	return width
}

// number is what a script finds. It is the test's: the page has none.
func (b *browser) number(script string) (n float64) {
	b.t.Helper()
	b.do(chromedp.Evaluate(script, &n))
	return n
}

func (b *browser) dark(is bool) {
	b.t.Helper()
	scheme := "light"
	if is {
		scheme = "dark"
	}
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// picture takes a picture of the visible part of the page. It is written to the directory
// BROWSER_PICTURES, if that is set.
func (b *browser) picture(name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	require.Greater(b.t, len(png), 10_000, "the picture is empty")
	if dir := os.Getenv("BROWSER_PICTURES"); dir != "" {
		require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
	}
}
