package servers_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/tests/harness"
)

// crowd is many informers of one configuration.
type crowd struct {
	g         *guarded
	informers []informer.ResourceVersionInformer
	told      []atomic.Int64 // additions and updates of each
	failures  harness.Failures
}

// crowdSize is more informers than one connection of HTTP/2 carries watches. End-to-end tests have
// thousands.
const crowdSize = 110

// startCrowd starts n informers, which end with the test, and returns when they watch.
func startCrowd(g *guarded, config *rest.Config, n int) *crowd {
	g.T.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(g.T, err)
	c := &crowd{g: g, told: make([]atomic.Int64, n)}
	for i := range n {
		count := func(any) { c.told[i].Add(1) }
		c.informers = append(c.informers, harness.Follow(g.World, informer.InformerConfig{
			ListerWatcher: factory.ForResource("", harness.Pods),
			Handler:       informer.ResourceEventHandlerFuncs{AddFunc: count, UpdateFunc: func(_, obj any) { count(obj) }},
			ErrorHandler:  c.failures.Handle,
		}))
		g.T.Cleanup(harness.Start(c.informers[i].RunWithContext))
	}
	return c
}

// requireTold changes a pod, and requires that all informers are told once, now.
func (c *crowd) requireTold(value string) {
	c.g.T.Helper()
	before := make([]int64, len(c.told))
	for i := range c.told {
		before[i] = c.told[i].Load()
	}
	c.g.UpdatePod("a/1", value)
	synctest.Wait()
	for i := range c.told {
		require.Equal(c.g.T, before[i]+1, c.told[i].Load(), "informer %d", i)
	}
}

// An authority is replaced, with the certificate of the server, while informers watch. Their
// watches stay, and when these end, others take their place at once: nothing is listed, and nothing
// waits for minutes.
func TestReplacedAuthorityIsTrustedWithinAMinute(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		c := startCrowd(g, g.config(), crowdSize)
		time.Sleep(time.Minute)
		c.requireTold("1")

		replaced, former := time.Now(), g.certificate
		g.renewAuthority(g.path("ca"))
		time.Sleep(time.Minute)
		c.requireTold("2")
		require.Empty(t, g.since(replaced), "the watches stay")

		cut := time.Now()
		g.listener.cut()
		time.Sleep(5 * time.Second)
		g.requireOnly(cut, crowdSize, "")
		c.requireTold("3")

		// The former authority is not trusted any more.
		g.mu.Lock()
		g.certificate = former
		g.mu.Unlock()
		g.listener.cut()
		time.Sleep(time.Millisecond) // a connection that is cut last may bring a request before
		cut = time.Now()
		time.Sleep(time.Minute)
		require.Empty(t, g.since(cut))
		var unknown x509.UnknownAuthorityError
		require.ErrorAs(t, c.informers[0].Status().LastError, &unknown)
	})
}

// The server has its new certificate before the client has the authority. As soon as the file is
// there, the next attempts succeed.
func TestAuthorityThatIsReplacedLateIsTrustedAtTheNextAttempt(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		c := startCrowd(g, g.config(), 10)
		time.Sleep(time.Minute)

		g.renewAuthority(g.path("late"))
		g.listener.cut()
		time.Sleep(time.Minute)
		var unknown x509.UnknownAuthorityError
		require.ErrorAs(t, c.informers[0].Status().LastError, &unknown)

		// A file that cannot be used leaves all as it is, and the error says so.
		g.write(g.path("ca"), nil)
		time.Sleep(2 * time.Minute)
		require.ErrorContains(t, c.informers[0].Status().LastError, "CAFile of the rest.Config: "+g.path("ca")+" is empty")

		arrived := time.Now()
		require.NoError(t, os.Rename(g.path("late"), g.path("ca")))
		time.Sleep(2 * time.Minute)
		g.requireOnly(arrived, 10, "")
		require.NoError(t, c.informers[0].Status().LastError)
		c.requireTold("1")
	})
}

// A client certificate is replaced while informers watch. Within a minute all of them watch with
// the new one, and nothing is listed.
func TestReplacedClientCertificateIsUsedWithinAMinute(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		renew := func(name string) {
			cert, key := g.issue(name)
			g.write(g.path("cert"), cert)
			// A moment in which the two do not belong together stops nothing.
			time.Sleep(25 * time.Second)
			g.write(g.path("key"), key)
		}
		renew("first")
		config := g.config()
		config.CertFile, config.KeyFile = g.path("cert"), g.path("key")
		c := startCrowd(g, config, crowdSize)
		time.Sleep(time.Minute)
		c.requireTold("1")

		started := time.Now()
		renew("second")
		require.Empty(t, g.since(started))
		replaced := time.Now()
		time.Sleep(time.Minute)
		g.accept("second")
		c.requireTold("2")
		g.requireOnly(replaced, crowdSize, "second")
		require.Empty(t, c.failures.Errors(), "the watches have ended as though the server had ended them")

		// Nothing more happens: a watch is ended once.
		quiet := time.Now()
		time.Sleep(10 * time.Minute)
		require.Empty(t, g.since(quiet))
	})
}

// A certificate that the server does not take any more is looked for at once.
func TestRefusedClientCertificateIsLookedForAtOnce(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		renew := func(name string) {
			cert, key := g.issue(name)
			g.write(g.path("cert"), cert)
			g.write(g.path("key"), key)
		}
		renew("first")
		config := g.config()
		config.CertFile, config.KeyFile = g.path("cert"), g.path("key")
		c := startCrowd(g, config, 10)
		time.Sleep(time.Minute)

		g.accept("second")
		renew("second")
		cut := time.Now()
		g.listener.cut()
		time.Sleep(10 * time.Second)
		c.requireTold("1")
		for _, p := range g.since(cut) {
			require.False(t, p.list)
		}
	})
}

// fakePlugin is an exec plugin that prints a file, and notes that it did.
type fakePlugin struct{ g *guarded }

func newFakePlugin(g *guarded) fakePlugin {
	g.T.Helper()
	script := "#!/bin/sh\necho run >> " + g.path("runs") + "\nexec cat " + g.path("credential") + " 2>/dev/null\n"
	require.NoError(g.T, os.WriteFile(g.path("plugin"), []byte(script), 0o700))
	return fakePlugin{g}
}

// config is a configuration with the plugin.
func (p fakePlugin) config() *rest.Config {
	config := p.g.config()
	config.ExecProvider = &api.ExecConfig{
		Command: p.g.path("plugin"), APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), InteractiveMode: api.NeverExecInteractiveMode,
	}
	return config
}

// gives makes the plugin give a credential that expires, unless lifetime is zero.
func (p fakePlugin) gives(status clientauthenticationv1.ExecCredentialStatus, lifetime time.Duration) {
	p.g.T.Helper()
	if lifetime > 0 {
		status.ExpirationTimestamp = &metav1.Time{Time: time.Now().Add(lifetime)}
	}
	text, err := json.Marshal(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status:   &status,
	})
	require.NoError(p.g.T, err)
	p.g.write(p.g.path("credential"), text)
}

func (p fakePlugin) givesToken(token string, lifetime time.Duration) {
	p.g.T.Helper()
	p.gives(clientauthenticationv1.ExecCredentialStatus{Token: token}, lifetime)
}

// fails makes the plugin fail.
func (p fakePlugin) fails() {
	p.g.T.Helper()
	require.NoError(p.g.T, os.Remove(p.g.path("credential")))
}

// runs returns how often the plugin was run since runs was called last.
func (p fakePlugin) runs() int {
	p.g.T.Helper()
	text, err := os.ReadFile(p.g.path("runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(p.g.T, err)
	require.NoError(p.g.T, os.Remove(p.g.path("runs")))
	return strings.Count(string(text), "run")
}

// A plugin is run when its credential has expired and a request is made, and when the server
// refuses it: once for all informers.
func TestPluginIsRunOnceForAllInformers(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		plugin := newFakePlugin(g)
		plugin.givesToken("first", 10*time.Minute)
		c := startCrowd(g, plugin.config(), crowdSize)
		time.Sleep(time.Minute)
		require.Equal(t, 1, plugin.runs())

		// It expires. Open watches go on, and new ones have the new token.
		plugin.givesToken("second", time.Hour)
		time.Sleep(10 * time.Minute)
		cut := time.Now()
		g.listener.cut()
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, plugin.runs())
		g.requireOnly(cut, crowdSize, "second")
		c.requireTold("1")

		// The server refuses it before that.
		g.accept("third")
		plugin.givesToken("third", 0)
		refused := time.Now()
		g.listener.cut()
		time.Sleep(time.Minute)
		require.Equal(t, 1, plugin.runs())
		for _, p := range g.since(refused) {
			require.False(t, p.list)
		}
		c.requireTold("2")
	})
}

// The server refuses what the plugin gives, for ten minutes. The plugin is run now and then, not
// for each attempt of each informer.
func TestPluginIsRunSeldomWhileItsTokenIsRefused(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		plugin := newFakePlugin(g)
		plugin.givesToken("first", 0)
		c := startCrowd(g, plugin.config(), crowdSize)
		time.Sleep(time.Minute)
		require.Equal(t, 1, plugin.runs())

		g.accept("second")
		refused := time.Now()
		g.listener.cut()
		const lasts = 10 * time.Minute
		time.Sleep(lasts)
		attempts, runs := len(g.since(refused)), plugin.runs()
		require.Greater(t, attempts, 10*crowdSize)
		require.LessOrEqual(t, runs, int(lasts/(10*time.Second))+1)
		require.Greater(t, runs, 10)
		require.Equal(t, factory.ErrorUnauthorized, factory.ClassOf(c.informers[0].Status().LastError))
		t.Logf("%d requests and %d runs in %v", attempts, runs, lasts)

		plugin.givesToken("second", 0)
		time.Sleep(90 * time.Second)
		for _, p := range g.since(refused) {
			require.False(t, p.list)
		}
		c.requireTold("1")
	})
}

// A plugin fails for a while. It is run after pauses that all informers share; nothing is
// sent, nothing is listed, and Status says why.
func TestPluginThatFailsIsRunSeldom(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		plugin := newFakePlugin(g)
		plugin.givesToken("first", 10*time.Minute)
		c := startCrowd(g, plugin.config(), crowdSize)
		time.Sleep(11 * time.Minute)
		require.Equal(t, 1, plugin.runs())
		c.requireTold("1") // an open watch goes on

		plugin.fails()
		failed := time.Now()
		g.listener.cut()
		const lasts = 10 * time.Minute
		time.Sleep(lasts)
		require.Empty(t, g.since(failed))
		runs := plugin.runs()
		require.Greater(t, runs, 10)
		require.Less(t, runs, 50)
		for _, i := range c.informers {
			status := i.Status()
			harness.ErrorAs[*informer.CredentialError](t, status.LastError)
			require.ErrorContains(t, status.LastError, "executable "+g.path("plugin")+" failed with exit code 1")
			require.Equal(t, informer.PhaseBackoff, status.Phase)
			require.Equal(t, factory.ErrorUnauthorized, factory.ClassOf(status.LastError))
		}
		t.Logf("%d runs in %v", runs, lasts)

		plugin.givesToken("second", time.Hour)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, plugin.runs())
		g.requireOnly(failed, crowdSize, "second")
		c.requireTold("2")
	})
}

// A plugin gives certificates. When one has expired, all watches end with its connections, and go
// on with the next.
func TestCertificateOfAPluginIsReplaced(t *testing.T) {
	inGuarded(t, func(t *testing.T, g *guarded) {
		g.CreatePods("a/1")
		plugin := newFakePlugin(g)
		gives := func(name string) {
			cert, key := g.issue(name)
			plugin.gives(clientauthenticationv1.ExecCredentialStatus{ClientCertificateData: string(cert), ClientKeyData: string(key)}, time.Hour)
		}
		gives("first")
		c := startCrowd(g, plugin.config(), 10)
		time.Sleep(59 * time.Minute)
		c.requireTold("1")

		gives("second")
		replaced := time.Now()
		time.Sleep(time.Hour) // each watch ends within half an hour, and the first that is opened again renews
		asked := g.since(replaced)
		require.NotEmpty(t, asked)
		for _, p := range asked {
			require.False(t, p.list)
			if p.at.After(replaced.Add(31 * time.Minute)) {
				require.Equal(t, "second", p.proof)
			}
		}
		require.LessOrEqual(t, plugin.runs(), 3)
		c.requireTold("2")
	})
}

// A file that is not there is named when the factory is made.
func TestMissingAuthorityIsNamed(t *testing.T) {
	config := &rest.Config{
		Host:            "https://api.example.com",
		BearerTokenFile: "/var/run/credentials/token",
		TLSClientConfig: rest.TLSClientConfig{CAFile: "/var/run/credentials/ca.crt"},
	}
	_, err := informer.NewDynamicListerWatcherFactory(config)
	require.ErrorContains(t, err, "CAFile of the rest.Config: open /var/run/credentials/ca.crt")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
