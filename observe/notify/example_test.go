package notify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/observe/notify"
)

func Example() {
	phone := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Priority"), r.Header.Get("Title"))
	}))
	defer phone.Close()

	topic, err := notify.NewNtfy(notify.Ntfy{URL: notify.Secret(phone.URL), Topic: "alerts"})
	if err != nil {
		panic(err)
	}
	n, err := notify.New(notify.Config{Targets: []notify.Target{topic}})
	if err != nil {
		panic(err)
	}
	store := n.Fleet() // pass it to fleet.New
	store.Fallback(fleet.FallbackEvent{Away: true})
	store.Fallback(fleet.FallbackEvent{Away: false})
	if err := n.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4 weir: shared store is unreachable
	// 3 weir: resolved: shared store is unreachable
}

// The receiver of a Webhook verifies the signature first, and ignores messages that it has already received. A message whose
// response was lost is sent again with the same ID.
func ExampleVerify() {
	const secret = notify.Secret("of both, 16 bytes or more")
	seen := make(map[string]bool)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !notify.Verify(secret, r.Header.Get(notify.SignatureHeader), body, time.Now()) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if id := r.Header.Get(notify.IDHeader); !seen[id] {
			seen[id] = true
			fmt.Println("one message, from weir")
		}
	}))
	defer receiver.Close()

	target, err := notify.NewWebhook(notify.Webhook{URL: notify.Secret(receiver.URL), Secret: secret})
	if err != nil {
		panic(err)
	}
	for range 2 {
		if err := target.Send(context.Background(), notify.Message{ID: "7"}); err != nil {
			fmt.Println(err)
		}
	}
	// Output: one message, from weir
}

// A file is a custom target. If a write fails, a later attempt may succeed.
type file struct{ path string }

func (f file) Name() string { return "file" }

func (f file) Send(_ context.Context, m notify.Message) error {
	out, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return &notify.SendError{Target: f.Name(), After: time.Minute, Final: os.IsPermission(err), Err: err}
	}
	_, err = fmt.Fprintln(out, m.Title())
	return errors.Join(err, out.Close())
}

func ExampleTarget() {
	err := file{"no such directory/alerts"}.Send(context.Background(), notify.Message{})
	fmt.Println(err)
	// Output: file: open no such directory/alerts: no such file or directory
}
