//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// orders is an admin listener that accepts orders about deliveries.
func orders(t *testing.T, take func(o deliveries.Order) (changed int)) (address string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o deliveries.Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(deliveries.Done{Changed: take(o)})
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// A stopped drop prints how many letters were dropped, including the pending order.
func TestAStoppedDropSaysHowManyAreDropped(t *testing.T) {
	for name, args := range map[string][]string{"many": {"-all"}, "by ID": {"a", "b", "c"}} {
		ctx, stop := context.WithCancel(t.Context())
		n := 0
		address := orders(t, func(o deliveries.Order) int {
			n += max(1, o.Most)
			stop()
			return max(1, o.Most)
		})
		var out, complaint bytes.Buffer
		err := run(ctx, world{args: append([]string{"dead", "drop", "-admin", address}, args...), out: &out, err: &complaint, env: noEnv})
		if want := map[string]string{"many": "200", "by ID": "1"}[name] + " dropped before the command was stopped; the others are unchanged\n"; err == nil || out.String() != want {
			t.Errorf("%s: %d were dropped, it says %q %q and ends with %v", name, n, &out, &complaint, err)
		}
	}
}

// A signal stops a redrive between two orders.
func TestASignalStopsARedrive(t *testing.T) {
	t.Parallel()
	p := &post{T: t, dir: t.TempDir()}
	var n atomic.Int64
	began := make(chan struct{})
	p.admin = orders(t, func(deliveries.Order) int {
		if n.Add(1) == 1 {
			close(began)
		}
		return 1
	})
	c := p.command("dead", "redrive", "-all", "-rate", "1/m", "-admin", p.admin)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || !strings.HasPrefix(out.String(), "1 redriven before the command was stopped") {
		t.Errorf("%q, %v", &out, err)
	}
}
