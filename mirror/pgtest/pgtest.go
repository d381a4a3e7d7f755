// Package pgtest runs a PostgreSQL server for tests: the real one, as Debian's package postgresql
// installs it, on a Unix socket in a temporary folder. Nothing listens on the network, and nothing
// else on the machine is touched.
//
//	server := pgtest.Start(t)           // skips the test, loudly, where there is no PostgreSQL
//	address := server.NewDatabase(t)    // postgres://...
//	server.Kill(t)                      // as kill -9 does
//	server.Restart(t)                   // at the same address
package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ErrMissing says that PostgreSQL is not installed.
var ErrMissing = errors.New("PostgreSQL is not installed: apt-get install -y --no-install-recommends postgresql, or make postgres-install")

// patience is for how long a server may take to start or to stop.
const patience = 3 * time.Minute

// Server is a running PostgreSQL server. Its methods are for one goroutine, except NewDatabase and
// URL.
type Server struct {
	programs  string // the folder of initdb and postgres
	folder    string // of data and socket
	settings  []string
	account   *syscall.Credential // of the server; nil = that of this process
	process   *exec.Cmd           // nil while it is stopped
	databases atomic.Int64
}

// Start starts a server that ends with the test. It skips the test where PostgreSQL is not
// installed. Settings are such as fsync=on; without them the server is quick, and safe against
// crashes of its own but not of the machine.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(settings...)
	if errors.Is(err, ErrMissing) {
		Skip(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Skip skips a test, and says that PostgreSQL was not tried.
func Skip(t testing.TB) {
	t.Helper()
	t.Skipf("NOT RUN: %v", ErrMissing)
}

// New starts a server, which Stop ends. The error is ErrMissing where PostgreSQL is not installed.
func New(settings ...string) (_ *Server, err error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: programs, settings: settings}
	if s.account, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp("", "pgtest-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.account != nil {
		if err := os.Chown(s.folder, int(s.account.Uid), int(s.account.Gid)); err != nil {
			return nil, err
		}
	}
	initdb := s.command("initdb", "--pgdata", s.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if text, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w:\n%s", err, text)
	}
	return s, s.start()
}

// find returns the folder of the newest server's programs: Debian's, where each version has its
// own, or that of the PATH.
func find() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", ErrMissing
		}
		path, err = filepath.EvalSymlinks(path) // the others may have no link
		return filepath.Dir(path), err
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // the folders are numbers
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// unprivileged returns an account for a server, which refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
		}
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }
func (s *Server) log() string  { return filepath.Join(s.folder, "log") }

// command returns a program of the server, which ends when this process does.
func (s *Server) command(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(s.programs, program), arguments...)
	command.Dir = s.folder
	command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") }), "LC_ALL=C")
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.account, Pdeathsig: syscall.SIGQUIT}
	return command
}

func (s *Server) start() error {
	arguments := []string{"-D", s.data(), "-k", s.folder, "-c", "listen_addresses="}
	for _, setting := range append([]string{"fsync=off", "full_page_writes=off", "max_connections=200"}, s.settings...) {
		arguments = append(arguments, "-c", setting)
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	deadline := time.Now().Add(patience)
	for {
		process := s.command("postgres", arguments...)
		process.Stdout, process.Stderr = log, log
		if err := process.Start(); err != nil {
			return err
		}
		s.process = process
		for time.Now().Before(deadline) {
			if s.answers() {
				return nil
			}
			if s.ended() {
				break // a killed server's last processes may still have its memory
			}
			time.Sleep(20 * time.Millisecond)
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(s.log())
			return fmt.Errorf("PostgreSQL does not start within %s:\n%s", patience, text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// answers reports whether the server takes connections.
func (s *Server) answers() bool {
	return s.command("pg_isready", "--quiet", "--host", s.folder).Run() == nil
}

// ended reports whether the server's process is gone, and forgets it then.
func (s *Server) ended() bool {
	status := syscall.WaitStatus(0)
	pid, err := syscall.Wait4(s.process.Process.Pid, &status, syscall.WNOHANG, nil)
	if err == nil && pid == 0 {
		return false
	}
	s.process = nil
	return true
}

// URL is the address of a database of the server.
func (s *Server) URL(database string) string {
	return "postgres:///" + url.PathEscape(database) + "?" + url.Values{"host": {s.folder}, "user": {"postgres"}}.Encode()
}

// NewDatabase creates an empty database, and returns its address. It ends with the server.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	s.Query(t, "postgres", "CREATE DATABASE "+name)
	return s.URL(name)
}

// Query runs statements in a database with psql, and returns what that prints: columns with |
// between them.
func (s *Server) Query(t testing.TB, database, statements string) string {
	t.Helper()
	psql := s.Psql(database)
	psql.Stdin = strings.NewReader(statements)
	var out, errs bytes.Buffer
	psql.Stdout, psql.Stderr = &out, &errs
	if err := psql.Run(); err != nil {
		t.Fatalf("psql: %v: %s", err, errs.String())
	}
	return strings.TrimSpace(out.String())
}

// Psql returns a psql that is connected to a database, and reads statements from its input.
func (s *Server) Psql(database string) *exec.Cmd {
	return s.command("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
		"--host", s.folder, "--username=postgres", database)
}

// Kill ends all processes of the server at once, as kill -9 does.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", s.process.Process.Pid))
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
	}
	_ = s.process.Wait() // it says that it was killed
	s.process = nil
}

// Restart starts a server again that was killed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT) // at once: nothing of it is kept
		_ = s.process.Wait()
		s.process = nil
	}
	return os.RemoveAll(s.folder)
}
