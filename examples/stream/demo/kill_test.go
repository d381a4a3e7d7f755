package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/examples/stream"
	"github.com/rvinformer/informer/informertest"
)

// The test runs itself as the process that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("STREAM_DIR") != "" {
		if err := runUntilKilled(); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// runUntilKilled runs the NATS server and what writes into it, and prints the address of the server.
func runUntilKilled() error {
	js, _, err := startNATS(os.Getenv("STREAM_DIR"))
	if err != nil {
		return err
	}
	window, err := time.ParseDuration(os.Getenv("STREAM_WINDOW"))
	if err != nil {
		return err
	}
	config := jetstream.StreamConfig{Name: "configmaps", Duplicates: window}
	if os.Getenv("STREAM_HISTORY") != "" {
		config.MaxMsgsPerSubject = -1
	}
	i, err := newInformer(context.Background(), js, config, &rest.Config{Host: os.Getenv("STREAM_CLUSTER")}, 200*time.Millisecond)
	if err != nil {
		return err
	}
	fmt.Println(js.Conn().ConnectedUrl())
	i.RunWithContext(context.Background())
	return nil
}

// crashes is a test that kills the NATS server, the informer and the consumer together, while the
// cluster lives on.
type crashes struct {
	*testing.T
	*rand.Rand
	cluster *informertest.Server
	env     []string
	running *exec.Cmd
	js      jetstream.JetStream
}

func newCrashes(t *testing.T, env ...string) *crashes {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("STREAM_SEED"), "1"), 10, 64)
	require.NoError(t, err)
	t.Logf("STREAM_SEED=%d", seed)
	cluster := informertest.NewServer(informertest.Options{})
	t.Cleanup(cluster.Close)
	env = append(env, "STREAM_DIR="+t.TempDir(), "STREAM_CLUSTER="+cluster.URL())
	return &crashes{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), cluster: cluster, env: env}
}

func (c *crashes) start() {
	c.running = exec.Command(os.Args[0])
	c.running.Env = append(os.Environ(), c.env...)
	c.running.Stderr = os.Stderr
	out, err := c.running.StdoutPipe()
	require.NoError(c, err)
	require.NoError(c, c.running.Start())
	running := c.running
	c.Cleanup(func() { _ = running.Process.Kill() }) // after a failure
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(c, err)
	conn, err := nats.Connect(strings.TrimSpace(line))
	require.NoError(c, err)
	c.js, err = jetstream.New(conn)
	require.NoError(c, err)
}

func (c *crashes) kill() {
	c.js.Conn().Close()
	require.NoError(c, c.running.Process.Kill())
	require.Error(c, c.running.Wait())
}

// change changes the cluster for a while.
func (c *crashes) change(lasts time.Duration) {
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(500 * time.Microsecond) {
		require.NoError(c, change(c.cluster, 40, c.IntN))
	}
}

// settle waits until a table that is rebuilt from the stream equals the cluster.
func (c *crashes) settle(after string) {
	want, err := c.cluster.ResourceVersions(configMaps, "")
	require.NoError(c, err)
	ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
	defer cancel()
	var got map[string]string
	for ; !maps.Equal(want, got); time.Sleep(10 * time.Millisecond) {
		require.NoError(c, ctx.Err(), "after %s the stream has %v, and the cluster %v", after, got, want)
		got, err = consume(ctx, c.js)
		require.NoError(c, err)
	}
	s, err := c.js.Stream(ctx, "configmaps")
	require.NoError(c, err)
	table, err := stream.Read(ctx, s, false)
	require.NoError(c, err)
	for _, o := range table {
		if o.Deleted {
			continue
		}
		object, err := c.cluster.Get(configMaps, o.Namespace, o.Name)
		require.NoError(c, err)
		text, err := object.MarshalJSON()
		require.NoError(c, err)
		require.JSONEq(c, string(text), string(o.JSON))
	}
}

// play kills everything at random moments: while it starts, works, or saves the checkpoint.
func (c *crashes) play() {
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("STREAM_KILLS"), "8"))
	require.NoError(c, err)
	c.change(100 * time.Millisecond)
	for kill := range kills {
		c.start()
		c.change(time.Duration(c.Int64N(int64(300 * time.Millisecond))))
		c.kill()
		c.change(time.Duration(c.Int64N(int64(50 * time.Millisecond))))
		if c.IntN(4) == 0 {
			c.cluster.Compact()
			c.change(time.Millisecond)
		}
		if c.IntN(2) == 0 {
			c.start()
			c.settle(fmt.Sprint("kill ", kill))
			c.kill()
		}
	}
	c.start()
	c.settle("the last kill")
}

// However often everything is killed, a consumer that begins anew has what the cluster has, and the
// stream has each state of an object once. The states of an object that was deleted may come again
// after a restart, and then its deletion comes again, too: the watch repeats all changes that are
// newer than the resource version of the checkpoint, and the checkpoint does not name deleted
// objects.
func TestStreamHasEachStateOnceAfterKills(t *testing.T) {
	c := newCrashes(t, "STREAM_WINDOW=2m", "STREAM_HISTORY=1")
	c.play()
	defer c.kill()
	s, err := c.js.Stream(t.Context(), "configmaps")
	require.NoError(t, err)
	seen, deleted := map[string]uint64{}, map[string]uint64{} // the sequences of states, and of the last deletions of names
	var opened uint64
	for sequence := uint64(1); ; sequence++ {
		m, err := s.GetMsg(t.Context(), sequence, jetstream.WithGetMsgSubject("configmaps.>"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		require.NoError(t, err)
		sequence = m.Sequence
		if m.Subject == "configmaps.open" {
			opened = sequence
			continue
		}
		name, isDeletion := m.Header.Get("Name"), m.Header.Get("Type") == "Deleted"
		state := fmt.Sprint(name, m.Header["Uid"], m.Header["Resource-Version"], isDeletion)
		if first := seen[state]; first != 0 {
			require.True(t, first <= deleted[name] && deleted[name] < opened, "%s is numbers %d and %d", state, first, sequence)
			continue
		}
		seen[state] = sequence
		if isDeletion {
			deleted[name] = sequence
		}
	}
	t.Logf("%d states", len(seen))
}

// A message that comes again after the stream has forgotten its id changes nothing either.
func TestConsumerEqualsTheClusterAfterKillsBeyondTheWindow(t *testing.T) {
	c := newCrashes(t, "STREAM_WINDOW=100ms")
	c.play()
	c.kill()
}
