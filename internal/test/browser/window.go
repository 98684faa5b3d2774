package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Start starts a headless Chromium in which names that end in .test resolve to this machine. end stops it.
func Start(ctx context.Context) (window context.Context, end context.CancelFunc, err error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, fmt.Errorf("%w; scripts/deps chromium brings it", err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("ignore-certificate-errors", true), // tests create their certificates
		chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"), chromedp.WSURLReadTimeout(patience))
	all, endAll := chromedp.NewExecAllocator(ctx, options...)
	window, endWindow := chromedp.NewContext(all)
	end = func() { endWindow(); endAll() }
	if err = chromedp.Do(window); err != nil {
		end()
		return nil, nil, err
	}
	return window, end, nil
}

// Scheme sets the preferred colors of pages: light or dark.
func Scheme(colours string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}})
		return err
	})
}

// A Tab is a page in a browser. It records unwanted behavior.
type Tab struct {
	context.Context
	Close context.CancelFunc

	mu    sync.Mutex
	asked []string // requested hosts
	wrong []string // errors in the console
}

// Open opens a tab of a window.
func Open(window context.Context) (*Tab, error) {
	t := new(Tab)
	t.Context, t.Close = chromedp.NewContext(window, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.hear))
	return t, chromedp.Do(t.Context, chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, log.Enable, cdp.Empty{})
		if err == nil {
			_, err = cdp.Call(ctx, to, network.Enable, network.EnableParams{})
		}
		return err
	}))
}

// hear records the requests and errors of a page.
func (t *Tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && !slices.Contains(t.asked, u.Host) {
			t.asked = append(t.asked, u.Host)
		}
	case *runtime.EventExceptionThrown:
		t.wrong = append(t.wrong, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			t.wrong = append(t.wrong, fmt.Sprint(e.Type))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.wrong = append(t.wrong, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// Behaved returns an error if the page requested other hosts than these or reported errors.
func (t *Tab) Behaved(hosts ...string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, host := range t.asked {
		if !slices.Contains(hosts, host) {
			errs = append(errs, fmt.Errorf("it asked %q", host))
		}
	}
	if len(t.wrong) > 0 {
		errs = append(errs, errors.New(strings.Join(t.wrong, "; ")))
	}
	return errors.Join(errs...)
}
