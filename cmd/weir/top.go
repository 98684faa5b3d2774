package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed1158cd35/weir/sidecar/board"
)

// Terminal sequences: switch to the alternate screen and hide the cursor, and switch back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// looksForSize is the interval for reading the terminal's size. Not every system reports changes.
const looksForSize = 200 * time.Millisecond

func newTop(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "Show a running weir live in a terminal, the worst upstreams first",
		Long: `Show a running weir live in a terminal, the worst upstreams first. If the output is not a terminal, show it once as plain text.

Keys: q quits, / filters, s changes the order, j, k and the arrow keys scroll.`,
		Example: `  weir top
  weir top --once --sort refused`,
	}
	t := top{}
	running, asJSON := w.adminFlags(c), jsonFlag(c)
	once := c.Flags().Bool("once", false, "show it once, as plain text")
	c.Flags().StringVar(&t.filter, "filter", "", "only upstreams with `TEXT` in their name or state")
	c.Flags().StringVar(&t.sort, "sort", sorts[0].name, "`ORDER` of upstreams: "+strings.Join(sortNames(), ", "))
	completeFixed(c, "sort", sortNames()...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !t.sortsBy(t.sort) {
			return usagef("--sort %q: want one of %s", t.sort, strings.Join(sortNames(), ", "))
		}
		if *asJSON {
			body, err := running.ask(c.Context(), http.MethodGet, boardPath(t.filter), nil)
			if err == nil {
				_, err = w.out.Write(body)
			}
			return err
		}
		return w.top(c.Context(), &t, running, *once)
	}
	return c
}

// top prints a view once, or shows it live on a terminal.
func (w world) top(ctx context.Context, t *top, a *admin, once bool) error {
	if once || !isTerminal(w.out) {
		v, err := a.board(ctx, t.filter)
		if err != nil {
			return err
		}
		t.view = v
		_, err = io.WriteString(w.out, t.plain())
		return err
	}
	out := w.out.(*os.File)
	in := out // a terminal is usually readable as well
	if isTerminal(w.in) {
		in = w.in.(*os.File)
	}
	_, t.plainly = w.env("NO_COLOR")
	return t.live(ctx, a, in, out)
}

func boardPath(filter string) string { return "/v1/overview?q=" + url.QueryEscape(filter) }

// board requests the data of the status page.
func (a *admin) board(ctx context.Context, filter string) (*board.View, error) {
	v := new(board.View)
	if err := a.read(ctx, boardPath(filter), v); err != nil {
		return nil, err
	}
	if slices.Contains(v.Upstreams, nil) {
		return nil, a.notWeir()
	}
	return v, nil
}

// A seen is the result of a request.
type seen struct {
	*board.View
	err error
}

// live draws until the user quits or ctx ends.
func (t *top) live(ctx context.Context, a *admin, in, out *os.File) error {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	_, _ = io.WriteString(out, enterScreen)
	defer func() { _, _ = io.WriteString(out, leaveScreen) }()

	var asking sync.WaitGroup
	ctx, end := context.WithCancel(ctx)
	defer asking.Wait()
	defer end()
	answers, asked := make(chan seen, 1), false
	ask := func() {
		if asked {
			return
		}
		asked = true
		filter := t.filter
		asking.Go(func() {
			v, err := a.board(ctx, filter)
			answers <- seen{v, err} // does not block: there is one request at a time
		})
	}
	keys := make(chan string)
	go read(ctx, in, keys) // ends with the program, because a read cannot be interrupted
	second, looks := time.NewTicker(time.Second), time.NewTicker(looksForSize)
	defer second.Stop()
	defer looks.Stop()
	ask()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-second.C:
			ask()
			continue
		case <-looks.C:
			width, height, err := term.GetSize(int(out.Fd()))
			if err != nil || width == t.width && height == t.height {
				continue
			}
			t.width, t.height = width, height
		case s := <-answers:
			asked = false
			t.take(s)
		case k := <-keys:
			filter := t.filter
			if t.press(k) {
				return nil
			}
			if t.filter != filter {
				ask()
			}
		}
		if _, err := io.WriteString(out, t.frame()); err != nil {
			return err
		}
	}
}

// read reads keys until the end of the input.
func read(ctx context.Context, in io.Reader, keys chan<- string) {
	typed := make([]byte, 64)
	for {
		n, err := in.Read(typed)
		if err != nil {
			return
		}
		for _, k := range keysOf(string(typed[:n])) {
			select {
			case keys <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}
