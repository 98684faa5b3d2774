package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// askKept opens a file that no process has open, or a database. It returns a function that responds as a running weir does.
func askKept(ctx context.Context, open func(context.Context) (delivery.Queue, error)) (ask func(context.Context, string, string, []byte) ([]byte, error), closes func() error, err error) {
	store, err := open(ctx)
	if errors.Is(err, sqlite.ErrHeld) {
		return nil, nil, fmt.Errorf("%w; to ask the running weir instead, leave out --file and --config", err)
	}
	if err != nil {
		return nil, nil, err
	}
	ask = func(ctx context.Context, method, path string, body []byte) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		a := answer{header: make(http.Header), status: http.StatusOK}
		deliveries.API{Queue: store}.Serve(&a, r, strings.TrimPrefix(r.URL.Path, deliveries.Path), deliveries.Caller{Operator: true})
		if a.status != http.StatusOK {
			return nil, errors.New(complaint(a.body.Bytes()))
		}
		return a.body.Bytes(), nil
	}
	return ask, store.Close, nil
}

// An answer is a response in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
