package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// askFile answers from a deliveries' file that no weir has open, as a running one would.
func askFile(ctx context.Context, path string) (ask func(context.Context, string, string, []byte) ([]byte, error), closes func() error, err error) {
	if _, err := os.Stat(path); err != nil { // or an empty one would be made
		return nil, nil, fmt.Errorf("deliveries' file: %w", err)
	}
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if errors.Is(err, sqlite.ErrHeld) {
		return nil, nil, fmt.Errorf("%w; leave out -file to ask it", err)
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

// An answer is kept in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
