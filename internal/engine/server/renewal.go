package server

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/internal/leaf/redact"
)

const (
	// lookEvery is how often the TLS files are looked at. Client-go does so every five minutes.
	lookEvery = 20 * time.Second
	// lookAgain is how soon they are looked at again after a request has failed.
	lookAgain = time.Second
	// endWithin is how long it may take until the watches of a former client certificate have
	// ended: a server should not have to begin thousands of them in one moment.
	endWithin = 10 * time.Second
)

// renewal is an http.RoundTripper whose connections are made anew when one of the TLS files of the
// configuration is replaced. New requests then take the new connections.
//
// Open requests stay on the connections that they have, with one exception: if the client's
// certificate was replaced, open watches end within endWithin, as though the server had ended them.
// So no watch proves itself with the former certificate any longer.
//
// The files are looked at when a request begins, and by a timer while watches are open that may
// have to end. A former content stays in use as long as a new one cannot be used.
type renewal struct {
	config       *rest.Config
	files        tlsFiles
	presence     *presence
	acquaintance *acquaintance

	mu      sync.Mutex
	current connections
	digest  tlsDigest // of the settings that current was made with
	looking bool
	looked  time.Time // when the last look began
	problem error     // why the newest content is not in use; nil if it is
	watches map[*watchBody]struct{}
	timer   *time.Timer // runs while there are watches
}

func newRenewal(config *rest.Config, files tlsFiles, p *presence, k *acquaintance) (*renewal, error) {
	r := &renewal{config: config, files: files, presence: p, acquaintance: k, looked: time.Now(), watches: map[*watchBody]struct{}{}}
	content, err := files.read()
	if err != nil {
		return nil, err
	}
	r.digest = content.digest()
	r.current, err = newConnections(content.fill(config), p, k)
	return r, err
}

func (r *renewal) RoundTrip(request *http.Request) (*http.Response, error) {
	r.look(lookEvery)
	r.mu.Lock()
	connections, digest := r.current, r.digest
	r.mu.Unlock()
	var watch *watchBody
	if r.files.cert != "" && isWatch(request) {
		watch, request = newWatchBody(r, request)
	}
	response, err := connections.RoundTrip(request)
	if err != nil || response == nil || isError(response) {
		watch.release()
	} else if watch != nil {
		watch.ReadCloser, response.Body = response.Body, watch
		r.opened(watch, digest)
	}
	if err != nil || response != nil && response.StatusCode == http.StatusUnauthorized {
		r.look(lookAgain) // what was asked for too early succeeds when it is asked for again
	}
	if err == nil {
		return response, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem != nil {
		err = fmt.Errorf("%w (the newest TLS files are not in use: %v)", err, r.problem)
	}
	return response, err
}

// look looks at the files, unless that was done within the last while, or is under way.
func (r *renewal) look(while time.Duration) {
	if !r.mayLook(while) {
		return
	}
	content, err := r.files.read()
	digest := content.digest()
	r.mu.Lock()
	changed := err == nil && digest != r.digest
	r.mu.Unlock()
	var next connections
	if changed {
		next, err = newConnections(content.fill(r.config), r.presence, r.acquaintance)
	}
	if changed && err == nil {
		r.replace(next, digest)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking = false
	if err != nil && (r.problem == nil || r.problem.Error() != err.Error()) {
		klog.Background().Error(err, "TLS files cannot be used, the former ones stay in use", "server", redact.Text(r.config.Host))
	}
	r.problem = err
}

// mayLook begins a look if it returns true.
func (r *renewal) mayLook(while time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looking || time.Since(r.looked) < while {
		return false
	}
	r.looking, r.looked = true, time.Now()
	return true
}

// replace replaces the connections by next, and ends the watches that prove themselves with another
// certificate than next does.
func (r *renewal) replace(next connections, digest tlsDigest) {
	r.mu.Lock()
	former := r.current
	ends := digest.client != r.digest.client
	r.current, r.digest = next, digest
	if ends {
		for watch := range r.watches {
			watch.endSoon()
		}
	}
	r.mu.Unlock()
	former.CloseIdleConnections()
	klog.Background().V(1).Info("TLS files have changed, requests take new connections", "server", redact.Text(r.config.Host), "clientCertificate", ends)
}

// opened notes an open watch. Digest is of the files that its connection was made with.
func (r *renewal) opened(watch *watchBody, digest tlsDigest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.watches) == 0 {
		r.timer = time.AfterFunc(lookEvery, r.tick)
	}
	r.watches[watch] = struct{}{}
	if digest.client != r.digest.client { // replaced meanwhile
		watch.endSoon()
	}
}

// closed notes the end of a watch.
func (r *renewal) closed(watch *watchBody) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watches, watch)
	if len(r.watches) == 0 && r.timer != nil {
		r.timer.Stop()
	}
}

// tick is a look at the files while watches are open.
func (r *renewal) tick() {
	r.look(lookEvery / 2)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.watches) > 0 {
		r.timer.Reset(lookEvery)
	}
}

// CloseIdleConnections is how an http.Client closes them.
func (r *renewal) CloseIdleConnections() {
	r.mu.Lock()
	current := r.current
	r.mu.Unlock()
	current.CloseIdleConnections()
}
