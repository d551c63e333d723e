package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"clarify": main})
}

// TestScripts runs testdata/script/*.txt. Beside the usual commands there are
//
//	exits <status> <command> [<argument>...]   run it, and expect exactly this exit status
//	let <variable> <regexp>                    set a variable to the first match in the last standard output
//	dev [<flag>...]                            run `clarify dev` on free ports, and wait for what it prints when it is ready
//	said <regexp>                              wait until dev has printed a line that matches
//	leave                                      interrupt dev, and wait for its end
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Values[devKey{}] = &devProcess{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "let": let, "dev": startDev, "said": said, "leave": leave,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits <status> <command> [<argument>...]")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exits with %d, want %s", got, args[0])
	}
}

func let(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: let <variable> <regexp>")
	}
	match := regexp.MustCompile("(?m)" + args[1]).FindString(ts.ReadFile("stdout"))
	if match == "" {
		ts.Fatalf("no match for %s in standard output", args[1])
	}
	ts.Setenv(args[0], match)
}

// devKey finds the script's dev process.
type devKey struct{}

// devProcess is a `clarify dev` that runs beside the script.
type devProcess struct {
	cmd   *exec.Cmd
	lines chan string
	done  sync.WaitGroup
}

func startDev(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(devKey{}).(*devProcess)
	if neg || d.cmd != nil {
		ts.Fatalf("usage: dev [<flag>...], once until leave")
	}
	bin, _, _ := strings.Cut(ts.Getenv("PATH"), string(os.PathListSeparator))
	d.cmd = exec.CommandContext(context.Background(), filepath.Join(bin, "clarify"),
		append([]string{"dev", "--port", "0", "--http", "127.0.0.1:0"}, args...)...)
	d.cmd.Dir = ts.MkAbs(".")
	d.cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR"), "TZ=UTC"}
	out, err := d.cmd.StdoutPipe()
	ts.Check(err)
	logged, err := os.Create(ts.MkAbs("dev.log"))
	ts.Check(err)
	d.cmd.Stderr = logged
	ts.Check(d.cmd.Start())
	ts.Defer(func() { _ = d.end(); _ = logged.Close() }) // a script that cares how it ends says leave
	d.lines = make(chan string, 1000)
	d.done.Go(func() { defer close(d.lines); d.read(out) })
	ts.Logf("%s", d.until(ts, regexp.MustCompile(`clarify show`)))
}

func (d *devProcess) read(out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		d.lines <- s.Text()
	}
}

// until returns what dev printed up to a line that matches. Without one the script fails when dev has ended.
func (d *devProcess) until(ts *testscript.TestScript, want *regexp.Regexp) string {
	var seen []string
	for line := range d.lines {
		seen = append(seen, line)
		if want.MatchString(line) {
			return strings.Join(seen, "\n")
		}
	}
	ts.Fatalf("dev ended and had not printed %s:\n%s\n%s", want, strings.Join(seen, "\n"), ts.ReadFile("dev.log"))
	return ""
}

func said(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(devKey{}).(*devProcess)
	if neg || len(args) != 1 || d.cmd == nil {
		ts.Fatalf("usage: said <regexp>, while dev runs")
	}
	ts.Logf("%s", d.until(ts, regexp.MustCompile(args[0])))
}

func leave(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(devKey{}).(*devProcess)
	if neg || len(args) > 0 || d.cmd == nil {
		ts.Fatalf("usage: leave, while dev runs")
	}
	ts.Check(d.end())
	ts.Logf("%s", ts.ReadFile("dev.log"))
}

// end interrupts dev and waits for it. Its error is that of the process.
func (d *devProcess) end() error {
	if d.cmd == nil {
		return nil
	}
	_ = d.cmd.Process.Signal(os.Interrupt)
	for range d.lines { // to the end of its output
	}
	d.done.Wait()
	err := d.cmd.Wait()
	d.cmd = nil
	return err
}
