package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	api "github.com/seed1158cd35/weir/sidecar/deliveries"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A limit per tenant applies to deliveries: deliveries of one tenant wait for it, and deliveries of other tenants do
// not.
func TestDeliveriesOfTenants(t *testing.T) {
	m := newMailbox(t, "always", "    keys: {tenant: \"header:X-Tenant\"}\n    limits: {each: {rate: 1/day, burst: 1, scope: tenant}}", "")
	hand := func(tenant, seconds string, want delivery.Status) string {
		_, r, text := m.post("/box/x", tenant, "X-Tenant: "+tenant, "Prefer: wait="+seconds)
		if r.Status != want {
			t.Fatalf("%s after %s s, want %s", text, seconds, want)
		}
		return r.ID
	}
	hand("a", "20", delivery.Completed)
	waits := hand("a", "1", delivery.Queued)
	for _, tenant := range []string{"b", "c"} {
		hand(tenant, "20", delivery.Completed)
	}
	if r := m.becomes(waits, delivery.Queued); r.Attempts != 0 {
		t.Errorf("what waits for its tenant's limit had %d attempts", r.Attempts)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := strings.Join(m.bodies, ""); got != "abc" {
		t.Errorf("delivered: %s", got)
	}
	for _, got := range m.got {
		if got.Header.Get("X-Tenant") == "" {
			t.Error("the tenant's header was not stored")
		}
	}
}

// breaker opens or resets the breaker as an operator.
func (m *mailbox) breaker(do string) {
	m.Helper()
	resp, err := http.Post("http://"+m.run.admin.Addr().String()+"/v1/breaker", "application/json", strings.NewReader(`{"upstream":"box","do":"`+do+`"}`))
	if err != nil {
		m.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 {
		m.Fatalf("%s: %d %s", do, resp.StatusCode, text)
	}
}

// With deliver_open and deliver_unknown: dead, deliveries behind an open breaker and deliveries with an unknown result
// become dead letters.
func TestWhatAFileGivesUp(t *testing.T) {
	m := newMailbox(t, "always", "    deliver_open: dead\n    deliver_unknown: dead", "")
	m.answers(504)
	if _, r, _ := m.post("/box/x", "1", "Prefer: wait=30"); r.Status != delivery.Failed || r.Reason != delivery.Uncertain || r.Attempts != 1 {
		t.Errorf("whose answer was lost: %+v", r)
	}
	m.breaker("open")
	if _, r, _ := m.post("/box/x", "2", "Prefer: wait=30"); r.Status != delivery.Failed || r.Reason != delivery.Unavailable {
		t.Errorf("while the breaker is open: %+v", r)
	}
}

// Deliveries that wait for an open breaker are sent when an operator resets it. They have consumed no attempt.
func TestDeliveriesGoWhenABreakerIsResetByHand(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	m.breaker("open")
	var ids []string
	for i := range 3 {
		_, r, _ := m.post("/box/x", fmt.Sprint(i), "Prefer: wait=1")
		ids = append(ids, r.ID)
	}
	for _, id := range ids {
		if r := m.becomes(id, delivery.Queued); r.Attempts != 0 || len(m.letters()) != 0 {
			t.Fatalf("while it is open: %d attempts, %d sent", r.Attempts, len(m.letters()))
		}
	}
	m.breaker("reset")
	for _, id := range ids {
		if r := m.becomes(id, delivery.Completed); r.Attempts != 1 {
			t.Errorf("%d attempts", r.Attempts)
		}
	}
}

// signs creates a certificate, signed by by or self-signed if by is nil.
func signs(t *testing.T, name string, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: by == nil,
	}
	if name == "weir" {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	parent, signer := c, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A certificate identifies its caller. The caller's deliveries and keys are separate, and the deliveries expire with
// the certificate.
func TestCertificatesSayWhoHandsIn(t *testing.T) {
	dir := t.TempDir()
	ca := signs(t, "authority", nil)
	own := signs(t, "weir", ca)
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"ca": {Type: "CERTIFICATE", Bytes: ca.Certificate[0]}, "cert": {Type: "CERTIFICATE", Bytes: own.Certificate[0]}, "key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := newMailbox(t, "always", "    deliver_schedule: messaging", fmt.Sprintf("tls: {cert: %q, key: %q}\nclient_ca: %q", filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")))
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	ask := func(who *tls.Certificate, method, path, body string, to any) int {
		t.Helper()
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*who}}}
		defer tr.CloseIdleConnections()
		r, err := http.NewRequest(method, "https://"+m.run.Addr()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Idempotency-Key", "k")
		}
		resp, err := (&http.Client{Transport: tr}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	ann, bob := signs(t, "ann", ca), signs(t, "bob", ca)
	var r, other api.Receipt
	if code := ask(ann, "POST", "/box/x", "hello", &r); code != 202 {
		t.Fatal(code)
	}
	if code := ask(bob, "POST", "/box/x", "hello", &other); code != 202 || other.ID == r.ID {
		t.Errorf("another caller's key: %d, %s is %s", code, other.ID, r.ID)
	}
	var whole api.Whole
	for whole.Status != delivery.Completed {
		if code := ask(ann, "GET", proxy.DeliveriesPath+r.ID, "", &whole); code != 200 || whole.Owner != "cert:CN=ann" || !whole.TokenEnds.Equal(ann.Leaf.NotAfter) || whole.Status == delivery.Failed {
			t.Fatalf("%d %+v", code, whole)
		}
		runtime.Gosched()
	}
	for name, path := range map[string]string{"one": r.ID, "a redrive": r.ID + "/redrive", "a drop": r.ID + "/drop"} {
		method := "POST"
		if name == "one" {
			method = "GET"
		}
		var refused struct{ Error struct{ Code string } }
		if code := ask(bob, method, proxy.DeliveriesPath+path, "", &refused); code != 404 || refused.Error.Code != "DELIVERY_NOT_FOUND" {
			t.Errorf("%s of another caller's: %d %+v", name, code, refused)
		}
	}
	var page api.Page
	if code := ask(bob, "GET", strings.TrimSuffix(proxy.DeliveriesPath, "/"), "", &page); code != 200 || len(page.Deliveries) != 1 || page.Deliveries[0].ID != other.ID {
		t.Errorf("%d, listed %+v", code, page)
	}
}
