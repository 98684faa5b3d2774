package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/front"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/plain"
)

// front returns the server for calls. It has no timeout for complete requests or responses, because they may be
// streams. All calls end with ctx.
func (s *Server) front(ctx context.Context) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // some SDKs use it for any http:// address
	return &http.Server{
		Handler:           http.HandlerFunc(s.serveCall),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       known,
		HTTP2:             s.connLimits.streams(atCalls),
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    int(s.file.MaxHeader),
		ErrorLog:          log.New(complaints{s.log}, "", 0),

		DisableGeneralOptionsHandler: true, // otherwise net/http would answer OPTIONS * as if it were the upstream
	}
}

// A door accepts calls or decisions: a server, behind a listener that handles plain requests itself.
type door struct {
	http  *http.Server
	main  net.Listener
	plain *plain.Listener // nil with TLS
}

// door returns the door for calls, with TLS if there is a certificate.
func (s *Server) door(server *http.Server) *door {
	l := s.connLimits[atCalls].Listen(s.main)
	if s.file.TLS != nil {
		return &door{http: server, main: front.Listen(l, auth.TLS(s.tls(), s.access.callers.Load, false), s.unshaken)}
	}
	p := plain.New(l, server)
	return &door{http: server, main: front.Listen(p, nil, s.unshaken), plain: p}
}

func (d *door) serve() error { return d.http.Serve(d.main) }

// shutdown stops accepting calls and waits for calls in progress until ctx ends.
func (d *door) shutdown(ctx context.Context) error {
	err := d.http.Shutdown(ctx)
	if d.plain != nil {
		err = errors.Join(err, d.plain.Wait(ctx))
	}
	return err
}

// close ends all calls. It follows a shutdown.
func (d *door) close() { _ = d.http.Close() }

// serveCall counts and serves a call. The http.Server does not count calls with upgraded connections.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request) {
	s.calls.begin()
	defer s.calls.end()
	defer connlimit.Serving(r)()
	if front.Doubtful(r.Context()) || s.page.Draining.Load() && r.Header["Upgrade"] == nil { // the next call uses another connection
		w.Header().Set("Connection", "close")
	}
	defer s.broken(w)
	s.proxy.ServeHTTP(w, r)
}

// broken notifies people of a panicking handler and panics again. net/http logs the stack and closes the connection.
func (s *Server) broken(w http.ResponseWriter) {
	switch why := recover(); why {
	case nil:
	case http.ErrAbortHandler:
		panic(why)
	default:
		id := w.Header().Get(httpx.CorrelationHeader)
		s.log.Error("panic", "fault", outcome.System.String(), "id", observe.Redact(id, 128))
		s.tells.failed("", "panic", id)
		panic(why)
	}
}

func (s *Server) back() *http.Server {
	return &http.Server{
		Handler: s.connLimits[atAdmin].Handler(s.page.Handler()), ConnContext: connlimit.Context, HTTP2: s.connLimits.streams(atAdmin), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(complaints{s.log}, "", 0),
	}
}

// tls returns a configuration that looks up the certificate for each connection, so that a reload can replace it.
func (s *Server) tls() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
	}
}

// readCert returns the certificate of the file, or nil if the file names none.
func readCert(f *config.File) (*tls.Certificate, error) {
	if f.TLS == nil {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(f.TLS.Cert, f.TLS.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &cert, nil
}

// leaf returns the server's certificate, or nil if there is none.
func (s *Server) leaf() *x509.Certificate {
	if cert := s.cert.Load(); cert != nil {
		return cert.Leaf
	}
	return nil
}
