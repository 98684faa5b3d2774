package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/board"
)

// Words of terminals: the screen that programs have for themselves, without a cursor, and the one that was there before.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// looksForSize is how often the size of a terminal is asked for: not every system tells when it changes.
const looksForSize = 200 * time.Millisecond

// runTop runs weir top: what a running weir is doing, live in a terminal; once, and plain, where there is none.
func runTop(ctx context.Context, w world) error {
	f := w.flags("top", "\n\nKeys: q ends it, / filters by a part of a name or a state, s sorts by something else, j, k and the arrows scroll.")
	a := w.adminFlags(f)
	once := f.Bool("once", false, "show it once, as plain text; so it is, too, where the output is no terminal")
	t := top{sort: sorts[0].name}
	f.StringVar(&t.filter, "filter", "", "only upstreams with this part of a name, or in this state")
	f.StringVar(&t.sort, "sort", t.sort, "what comes first: "+sortNames())
	if err := w.parse(f, 0); err != nil {
		return err
	}
	if !t.sortsBy(t.sort) {
		fmt.Fprintf(w.err, "weir top: -sort %s: want one of %s\n", t.sort, sortNames())
		f.Usage()
		return cli.ErrUsage
	}
	out, terminal := w.out.(*os.File)
	if *once || !terminal || !term.IsTerminal(int(out.Fd())) {
		v, err := a.board(ctx, t.filter)
		if err != nil {
			return err
		}
		t.view = v
		_, err = io.WriteString(w.out, t.plain())
		return err
	}
	in, typed := w.in.(*os.File)
	if !typed || !term.IsTerminal(int(in.Fd())) {
		in = out // what a terminal shows can mostly be typed to, too
	}
	_, t.plainly = w.env("NO_COLOR")
	return t.live(ctx, a, in, out)
}

// board asks for what the status page shows.
func (a *admin) board(ctx context.Context, filter string) (*board.View, error) {
	text, err := a.ask(ctx, http.MethodGet, "/v1/board?q="+url.QueryEscape(filter), nil)
	if err != nil {
		return nil, err
	}
	v := new(board.View)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w; is it a weir?", a.name(), err)
	}
	if slices.Contains(v.Upstreams, nil) {
		return nil, fmt.Errorf("%s does not answer as weir does", a.name())
	}
	return v, nil
}

// seen is what weir answered.
type seen struct {
	*board.View
	err error
}

// live draws until it is told to end.
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
			answers <- seen{v, err} // there is room: one asks at a time
		})
	}
	keys := make(chan string)
	go read(ctx, in, keys) // it ends with the program, as nothing ends a read
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

// read reads keys, until nobody types any more.
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
