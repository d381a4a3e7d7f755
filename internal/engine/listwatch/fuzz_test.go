package listwatch_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/engine/listwatch"
)

// FuzzStatus names what a Status says that a server has sent.
func FuzzStatus(f *testing.F) {
	for _, seed := range []string{
		`{"code":410,"reason":"Expired"}`, `{"code":410,"reason":"Gone"}`, `{"code":410}`, `{"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}`,
		`{"code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`, `{"code":504,"reason":"Timeout","message":"Too large resource version: 5"}`,
		`{"code":504,"reason":"Timeout","details":{"causes":[{"message":"Too large resource version: 5"}]}}`, `{"code":400,"reason":"BadRequest"}`, `{"code":422,"reason":"Invalid"}`,
		`{"code":500,"reason":"ServerTimeout","details":{"retryAfterSeconds":-2147483648}}`, `{"reason":"Timeout","details":{"retryAfterSeconds":2147483647}}`, `{"reason":"InternalError"}`, `{"code":500,"reason":"InternalError","message":"required revision has been compacted"}`, `{}`, `{"code":-1}`,
		// apimachinery takes a reason that it does not know, with 500, for an InternalError.
		`{"code":500,"reason":"IntelnraError","message":"required revision has been compacted"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var status metav1.Status
		if len(text) > 1<<13 || json.Unmarshal(text, &status) != nil {
			return
		}
		whole, marshalErr := json.Marshal(status)
		require.NoError(t, marshalErr)
		err := apierrors.FromObject(&status)
		asked := listwatch.RetryAfter(err)
		require.GreaterOrEqual(t, asked, time.Duration(0))
		if status.Details != nil && asked > 0 {
			require.Equal(t, min(time.Duration(status.Details.RetryAfterSeconds)*time.Second, 5*time.Minute), asked)
		} else {
			require.Zero(t, asked)
		}

		kind := listwatch.Classify(err)
		require.Contains(t, []listwatch.Kind{listwatch.Failed, listwatch.Expired, listwatch.TooLarge, listwatch.BadRequest}, kind)
		if status.Reason == metav1.StatusReasonExpired || status.Reason == metav1.StatusReasonGone {
			require.Equal(t, listwatch.Expired, kind)
		}
		compacted := apierrors.IsInternalError(err) && bytes.Contains(whole, []byte("required revision has been compacted"))
		if kind == listwatch.Expired {
			require.True(t, status.Code == http.StatusGone || status.Reason == metav1.StatusReasonExpired || status.Reason == metav1.StatusReasonGone || compacted, "%s", text)
		}
		at := time.Unix(1, 0)
		stream := listwatch.ClassifyStream(err, at)
		corrupt := status.Reason == metav1.StatusReasonStoreReadError
		require.Equal(t, kind == listwatch.Expired || corrupt && kind != listwatch.TooLarge, stream.Kind == listwatch.Expired)
		require.Equal(t, kind == listwatch.TooLarge, stream.Kind == listwatch.TooLarge)
		if stream.Kind == listwatch.WatchBroken {
			require.Equal(t, at, stream.At, "the backoff begins there")
		}
		if watch := listwatch.ClassifyWatch(err); watch != listwatch.NoWatch {
			require.Equal(t, kind, watch)
		}
		if watchList := listwatch.ClassifyWatchList(err); watchList != listwatch.NoWatchList {
			require.Equal(t, kind, watchList)
		}
		initial := listwatch.ClassifyInitialEvents(err)
		require.Equal(t, kind == listwatch.TooLarge, initial == listwatch.TooLarge)
		if listwatch.Down(err) {
			require.GreaterOrEqual(t, status.Code, int32(http.StatusInternalServerError))
			require.NotEqual(t, listwatch.TooLarge, kind)
		}
	})
}
