package podserver

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trouble is what is wrong with a server.
type Trouble string

const (
	// Healthy: nothing.
	Healthy Trouble = ""
	// Dead: it takes requests and does not answer.
	Dead Trouble = "dead"
	// Slow: it sends SlowBytes a second in all, over all its connections.
	Slow Trouble = "slow"
	// Forbidden: it answers 403 to all.
	Forbidden Trouble = "forbidden"
)

// SlowBytes is what a slow server sends in a second.
const SlowBytes = 10_000

// around is next with the trouble.
func (t Trouble) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch t {
		case Dead:
			<-r.Context().Done()
		case Forbidden:
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "you may not")
		default:
			next.ServeHTTP(w, r)
		}
	})
}
