package drs_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
)

func config(url string) aws.Config {
	return aws.Config{Region: "eu-west-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
}

// listening is a server on a port of its own.
func listening(t *testing.T, h http.Handler) aws.Config {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return config(s.URL)
}

// inside is a server for a bubble of testing/synctest: HTTP over connections in memory.
// close must be called before the bubble ends.
func inside(h http.Handler) (cfg aws.Config, close func()) {
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	transport := &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: 100}
	cfg = config("http://drs.test")
	cfg.HTTPClient = &http.Client{Transport: transport}
	return cfg, func() {
		transport.CloseIdleConnections()
		_ = s.Close()
		wg.Wait()
	}
}

// pipes is a network in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// recovering is the input of a recovery of servers.
func recovering(ids ...string) *sdk.StartRecoveryInput {
	in := new(sdk.StartRecoveryInput)
	for _, id := range ids {
		in.SourceServers = append(in.SourceServers, types.StartRecoveryRequestSourceServer{SourceServerID: &id})
	}
	return in
}

const oneServer = "s-00000000000000001"
