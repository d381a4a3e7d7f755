package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rvinformer/informer/e2e/cluster"
)

// TestMirror runs the program mirror as its users do, against the real
// server. What it says of a second start, which compares the versions in
// its database with the server's, proves that the database equals the server.
func TestMirror(t *testing.T) {
	skipInShort(t)
	ctx := testContext(t)
	c := usual.Get(t)
	pods := newPods(ctx, t, c, 300)
	widgets := newWidgets(ctx, t, c, 50)
	run := newMirrorProgram(ctx, t, c)

	before := run("pods,widgets.example.com")
	require.Equal(t, counts{added: before["pods"].objects, objects: before["pods"].objects}, before["pods"])
	require.Equal(t, counts{added: before["widgets.example.com"].objects, objects: before["widgets.example.com"].objects}, before["widgets.example.com"])
	require.GreaterOrEqual(t, before["pods"].objects, 300, "those of other tests may be there too")

	require.NoError(t, pods.Delete(ctx, cluster.Name(1)))
	require.NoError(t, pods.Update(ctx, cluster.Name(2), "changed"))
	require.NoError(t, pods.Delete(ctx, cluster.Name(3))) // and created again
	require.NoError(t, pods.Create(ctx, cluster.Name(3)))
	require.NoError(t, widgets.Create(ctx, "another"))
	after := run("pods,widgets.example.com")
	n := before["pods"].objects
	require.Equal(t, counts{added: 1, updated: 1, deleted: 2, unchanged: n - 3, objects: n - 1}, after["pods"])
	n = before["widgets.example.com"].objects
	require.Equal(t, counts{added: 1, unchanged: n, objects: n + 1}, after["widgets.example.com"])
}

// TestMirrorEndsOnSIGINT stops the program as one at a terminal does.
func TestMirrorEndsOnSIGINT(t *testing.T) {
	skipInShort(t)
	ctx := testContext(t)
	c := usual.Get(t)
	newPods(ctx, t, c, 20)
	program, args := buildMirrorProgram(ctx, t, c)
	cmd := exec.CommandContext(ctx, program, append(args, "--resources", "pods")...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.Contains(lines.Text(), "pods: synced") {
		t.Log(lines.Text())
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for lines.Scan() {
		t.Log(lines.Text())
	}
	require.NoError(t, cmd.Wait(), "exit code 0")
}

// counts are a row of the mirror's summary.
type counts struct{ objects, added, updated, deleted, unchanged int }

// newMirrorProgram builds the program and returns a function that runs it once
// and returns its summary, by resource.
func newMirrorProgram(ctx context.Context, t *testing.T, c *cluster.Cluster) func(resources string) map[string]counts {
	program, args := buildMirrorProgram(ctx, t, c)
	return func(resources string) map[string]counts {
		cmd := exec.CommandContext(ctx, program, append(args, "--resources", resources, "--once")...)
		cmd.Stderr = os.Stderr
		output, err := cmd.Output()
		require.NoError(t, err, "%s", output)
		return summary(t, string(output))
	}
}

// buildMirrorProgram returns the program and the arguments that name the cluster
// and a database.
func buildMirrorProgram(ctx context.Context, t *testing.T, c *cluster.Cluster) (program string, args []string) {
	dir := t.TempDir()
	program = filepath.Join(dir, "mirror")
	output, err := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("..", "mirror"), "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	writeKubeconfig(t, c, kubeconfig)
	return program, []string{"--kubeconfig", kubeconfig, "--db", filepath.Join(dir, "mirror.db")}
}

func writeKubeconfig(t *testing.T, c *cluster.Cluster, path string) {
	config := c.Config()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["e2e"] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
		InsecureSkipTLSVerify:    config.Insecure,
	}
	kubeconfig.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "admin"}
	kubeconfig.CurrentContext = "e2e"
	require.NoError(t, clientcmd.WriteToFile(*kubeconfig, path))
}

var gaps = regexp.MustCompile(`\s{2,}`)

// summary reads the table that ends the mirror's output: cluster, resource,
// objects, added, updated, deleted, unchanged, time, result.
func summary(t *testing.T, output string) map[string]counts {
	rows := map[string]counts{}
	for line := range strings.Lines(output) {
		fields := gaps.Split(strings.TrimSpace(line), -1)
		if len(fields) != 9 || fields[0] != "e2e" {
			continue
		}
		require.Equal(t, "synced", fields[8], "%s", line)
		var numbers [5]int
		for i := range numbers {
			n, err := strconv.Atoi(strings.ReplaceAll(fields[2+i], ",", ""))
			require.NoError(t, err, "%s", line)
			numbers[i] = n
		}
		rows[fields[1]] = counts{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]}
	}
	require.NotEmpty(t, rows, "no summary in:\n%s", output)
	return rows
}
