package envoy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/fleet"
)

func TestTheLimitHoldsUnderLoad(t *testing.T) {
	w := onMemory(t, Config{}, Options{})
	holds(t, w)
}

// holds sends 1,600 concurrent requests for 1,000 units, to several servers on one store.
func holds(t *testing.T, servers ...*world) {
	rules := must(Parse("r", []byte("domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, requests_per_unit: 1000}\n")))
	for _, w := range servers {
		w.server.Set(rules)
	}
	v := fresh()
	var granted, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 25 {
				resp, err := servers[i%len(servers)].client.ShouldRateLimit(t.Context(), request("d", "k="+v))
				switch {
				case err != nil:
					t.Error(err)
				case resp.OverallCode == okay:
					granted.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != 1000 || refused.Load() != 600 {
		t.Errorf("%d granted and %d refused, want 1000 and 600", granted.Load(), refused.Load())
	}
}

func must(r *Rules, err error) *Rules {
	if err != nil {
		panic(err)
	}
	return r
}

func TestHealthIsReadyWithRules(t *testing.T) {
	s, err := New(Config{}, fleet.NewMemory(frozen), Options{Clock: frozen})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, server: s}
	w.dial(serve(t, s), insecure.NewCredentials())
	health := healthpb.NewHealthClient(w.conn)
	check := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, name := range []string{"", "envoy.service.ratelimit.v3.RateLimitService"} {
			resp, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
			if err != nil || resp.Status != want {
				t.Errorf("%q: %v, %v, want %v", name, resp.GetStatus(), err, want)
			}
		}
	}
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	w.want("ok: ok 0", request("d", "k=v"))
	s.Set(must(Load("testdata/rules")))
	check(healthpb.HealthCheckResponse_SERVING)
	s.Set(nil)
	check(healthpb.HealthCheckResponse_NOT_SERVING)
}

func TestReflectionNamesTheServices(t *testing.T) {
	w := onMemory(t, Config{}, Options{})
	stream, err := reflectpb.NewServerReflectionClient(w.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil || !strings.Contains(resp.String(), service) || !strings.Contains(resp.String(), "grpc.health.v1.Health") {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestLargeRequestsAreRefused(t *testing.T) {
	w := onMemory(t, Config{MaxRequestBytes: 1000}, Options{})
	_, err := w.client.ShouldRateLimit(t.Context(), request("another", "key2="+strings.Repeat("x", 1000)))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestConnectionsAreReplacedAtTheirAge(t *testing.T) {
	w := onMemory(t, Config{MaxConnectionAge: 30 * time.Millisecond}, Options{})
	w.want("ok: ok 0", request("d", "k=v"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !w.conn.WaitForStateChange(ctx, connectivity.Ready) {
		t.Fatal("the connection is as it was after 10s")
	}
	w.want("ok: ok 0", request("d", "k=v"))
}

// authority signs certificates for a test, each for one name.
type authority struct {
	*testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{T: t}
	a.key, a.cert = a.sign("authority", nil)
	return a
}

func (a *authority) sign(name string, by *authority) (*ecdsa.PrivateKey, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: by == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.Fatal(err)
	}
	return key, cert
}

func (a *authority) certificate(name string) tls.Certificate {
	key, cert := a.sign(name, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func TestMutualTLSNamesTheCaller(t *testing.T) {
	ca := newAuthority(t)
	var caller string
	o := Options{
		Clock: frozen,
		TLS:   &tls.Config{Certificates: []tls.Certificate{ca.certificate("weir")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool()},
		Auth: func(_ string, conn *tls.ConnectionState) (string, error) {
			return conn.PeerCertificates[0].Subject.CommonName, nil
		},
		Events: Events{Decided: func(d Decision) { caller = d.Caller }},
	}
	s, err := New(Config{Rules: "testdata/rules", Timeout: time.Minute}, fleet.NewMemory(frozen), o)
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, s)
	w := &world{T: t, server: s}
	w.dial(address, credentials.NewTLS(&tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.certificate("envoy-1")}}))
	w.want("ok: ok 9/10 hour", request("another", "key3=v"))
	if caller != "envoy-1" {
		t.Errorf("caller %q, want envoy-1", caller)
	}
	for name, creds := range map[string]credentials.TransportCredentials{
		"no certificate": credentials.NewTLS(&tls.Config{RootCAs: ca.pool()}),
		"another's":      credentials.NewTLS(&tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{newAuthority(t).certificate("envoy-1")}}),
		"in the clear":   insecure.NewCredentials(),
	} {
		w.dial(address, creds)
		if _, err := w.client.ShouldRateLimit(t.Context(), request("another", "key3=v")); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBearer(t *testing.T) {
	var caller string
	w := onMemory(t, Config{}, Options{
		Auth: func(authorization string, conn *tls.ConnectionState) (string, error) {
			switch {
			case authorization == "Bearer good" && conn == nil:
				return "edge", nil
			case authorization == "Bearer other":
				return "", status.Error(codes.PermissionDenied, "not yours")
			}
			return "", errors.New("secret detail of " + authorization)
		},
		Events: Events{Decided: func(d Decision) { caller = d.Caller }},
	})
	call := func(token string) error {
		ctx := t.Context()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
		}
		_, err := w.client.ShouldRateLimit(ctx, request("another", "key3=v"))
		return err
	}
	if err := call("Bearer good"); err != nil || caller != "edge" {
		t.Errorf("%v, caller %q", err, caller)
	}
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, "Bearer bad": codes.Unauthenticated, "Bearer other": codes.PermissionDenied} {
		if err := call(token); status.Code(err) != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %v", token, err, want)
		}
	}
	if _, err := healthpb.NewHealthClient(w.conn).Check(t.Context(), new(healthpb.HealthCheckRequest)); err != nil {
		t.Errorf("health: %v", err)
	}
	stream, err := reflectpb.NewServerReflectionClient(w.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("reflection: %v", err)
	}
}

func TestDecisionsAreTold(t *testing.T) {
	var last Decision
	w := onMemory(t, Config{}, Options{Events: Events{Decided: func(d Decision) { last = d }}})
	w.ask(request("another", "shadow=v +4", "key9=v", "key3=v"))
	if last.Refused || len(last.Limits) != 2 || last.Domain != "another" ||
		last.Limits[0] != (Limited{Limit: "another.shadow", Hits: 4, Over: true, Shadow: true}) ||
		last.Limits[1] != (Limited{Limit: "another.key3", Hits: 1, Left: 9}) {
		t.Errorf("%+v", last)
	}
	w.ask(request("another", "quota=v", "key3=v +10"))
	if !last.Refused || last.Limits[0] != (Limited{Limit: "another.quota", Hits: 1, Left: 3, Quota: true}) ||
		last.Limits[1] != (Limited{Limit: "another.key3", Hits: 10, Left: 9, Over: true, Refuse: true}) {
		t.Errorf("%+v", last)
	}
	if st := w.server.Stats(); st.Requests != 2 || st.Refused != 1 {
		t.Errorf("%+v", st)
	}
}

func TestConfigMistakes(t *testing.T) {
	_, err := New(Config{OnStoreError: "maybe", Headers: "all", MaxRequestBytes: -1, Timeout: -1, Grace: -1, MaxConnectionAge: -1}, nil, Options{})
	for _, want := range []string{`on store error "maybe"`, `headers "all"`, "max request bytes -1", "timeout -1ns", "grace -1ns", "max connection age -1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := New(Config{Rules: "nowhere"}, nil, Options{}); err == nil {
		t.Error("rules that are not there")
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	held := &heldStore{Store: fleet.NewMemory(frozen), begun: make(chan bool), release: make(chan bool)}
	s, err := New(Config{Rules: "testdata/rules", Timeout: time.Minute}, held, Options{Clock: frozen})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, server: s}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done, answered := make(chan error, 1), make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	w.dial(l.Addr().String(), insecure.NewCredentials())
	go func() {
		_, err := w.client.ShouldRateLimit(t.Context(), request("another", "key3=v"), grpc.WaitForReady(true))
		answered <- err
	}()
	<-held.begun
	ended := make(chan bool)
	go func() { s.Shutdown(t.Context()); close(ended) }()
	for t.Context().Err() == nil { // until no request is accepted
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			break
		}
		c.Close()
	}
	close(held.release)
	if err := <-answered; err != nil {
		t.Errorf("a request under way: %v", err)
	}
	<-ended
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A heldStore replies when it is released.
type heldStore struct {
	fleet.Store
	begun, release chan bool
}

func (h *heldStore) Take(ctx context.Context, a *fleet.Ask) error {
	h.begun <- true
	<-h.release
	return h.Store.Take(ctx, a)
}
