package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// crew is the processes of one run. Whoever is killed is started again, without what killed it.
type crew struct {
	t      *testing.T
	dir    string
	kills  []kill
	giveUp func()   // ends the run
	alive  *os.File // held open by executors and tools: its other end says when the last of them is gone
	gone   *os.File

	mu      sync.Mutex
	port    int           // of the server, the same in all its lives
	up      chan struct{} // closed when the port is known
	running map[string]*exec.Cmd
	stops   map[string]io.Closer
	over    bool
	output  bytes.Buffer
	all     sync.WaitGroup
}

func newCrew(t *testing.T, kills []kill, giveUp func()) *crew {
	c := &crew{t: t, dir: t.TempDir(), kills: kills, giveUp: giveUp, up: make(chan struct{}), running: map[string]*exec.Cmd{}, stops: map[string]io.Closer{}}
	var err error
	if c.gone, c.alive, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			t.Logf("the processes said:\n%s", c.output.String())
		}
	})
	return c
}

// Write collects what all processes print.
func (c *crew) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.Write(p)
}

// keep plays a role until it ends by itself, in as many processes as that takes. ended is closed then.
func (c *crew) keep(ctx context.Context, role string) (ended <-chan struct{}) {
	done := make(chan struct{})
	c.all.Go(func() {
		defer close(done)
		kills := slices.DeleteFunc(slices.Clone(c.kills), func(k kill) bool { return k.By != role && !(role == "executor" && k.By == "tool") })
		for {
			s := script{Role: role, Dir: c.dir, Port: c.address()}
			if len(kills) > 0 {
				s.Kill = &kills[0]
			}
			err := c.once(ctx, s)
			switch exit, _ := errors.AsType[*exec.ExitError](err); {
			case err == nil || ctx.Err() != nil || c.isOver():
				return
			case exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL: //nolint:forcetypeassert // on a unix system
				c.t.Errorf("%s: %v", role, err)
				c.giveUp()
				return
			}
			for len(kills) > 0 && c.fired(kills[0]) {
				kills = kills[1:]
			}
		}
	})
	return done
}

// once runs one process of a role to its end.
func (c *crew) once(ctx context.Context, s script) error {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), s.env())
	cmd.Stderr = c
	if s.Role == "executor" {
		cmd.ExtraFiles = []*os.File{c.alive}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.begin(cmd, s.Role, stdin); err != nil {
		return err
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if s.Role == "server" && strings.HasPrefix(lines.Text(), "nats://") {
			c.serverUp(lines.Text())
			continue
		}
		fmt.Fprintln(c, s.Role+":", lines.Text())
	}
	err = cmd.Wait()
	_ = os.Remove(pidFile(c.dir, s.Role)) // nobody else's process is to be killed under its number
	return err
}

func (c *crew) begin(cmd *exec.Cmd, role string, stdin io.Closer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errors.New("the run is over")
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.running[role], c.stops[role] = cmd, stdin
	return os.WriteFile(pidFile(c.dir, role), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

func (c *crew) serverUp(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.port != 0 {
		return
	}
	u, err := url.Parse(address)
	if err != nil {
		c.t.Error(err)
		return
	}
	if c.port, err = strconv.Atoi(u.Port()); err != nil {
		c.t.Error(err)
	}
	close(c.up)
}

func (c *crew) address() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.port
}

func (c *crew) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

func (c *crew) fired(k kill) bool { return exists(firedFile(c.dir, k)) }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// settle waits until no executor and no tool of a killed executor is left.
func (c *crew) settle() {
	_ = c.alive.Close()
	_, _ = io.Copy(io.Discard, c.gone)
}

// stop ends every process that is left and waits for them.
func (c *crew) stop() {
	c.mu.Lock()
	c.over = true
	for role, stdin := range c.stops {
		_ = stdin.Close()
		if c.t.Failed() {
			_ = c.running[role].Process.Kill()
		}
	}
	c.mu.Unlock()
	c.all.Wait()
	_ = c.alive.Close()
	_ = c.gone.Close()
}
