package serve

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// stores reports whether the deliveries' file or its log contains a text.
func (m *mailbox) stores(text string) bool {
	m.Helper()
	for _, name := range []string{"deliveries.db", "deliveries.db-wal"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(m.file), name))
		if err != nil {
			m.Fatal(err)
		}
		if bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}

// weir adds its credentials when it sends. Neither the caller's nor weir's credentials are stored.
func TestCredentialsArePutInWhenSending(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	m := newMailbox(t, "true", "    credentials: {Authorization: WEIR_TEST_CREDENTIAL}", "")
	_, r, text := m.post("/box/x", "x", async, "Authorization: Bearer tell-nobody")
	if r.ID == "" {
		t.Fatal(text)
	}
	m.becomes(r.ID, delivery.Completed)
	if resp, _, _ := m.post("/box/x", "x", "Authorization: Bearer tell-nobody"); resp.StatusCode != 200 {
		t.Errorf("a direct call: %d", resp.StatusCode)
	}
	for _, got := range m.letters() {
		if got.Header.Get("Authorization") != "Bearer of-weir-itself" {
			t.Errorf("sent with %q", got.Header.Get("Authorization"))
		}
	}
	if m.stores("tell-nobody") || m.stores("of-weir-itself") {
		t.Error("a credential is stored")
	}
	if _, r, text := m.post("/box/x", "x", async, "X-Api-Key: tell-nobody"); r.ID != "" || !strings.Contains(text, "credentials are not stored") {
		t.Errorf("a credential that weir has not: %s", text)
	}
}

// Requests to AWS are signed when they are sent, with weir's keys and the current time.
func TestAWSDeliveriesAreSignedWhenSending(t *testing.T) {
	for name, v := range map[string]string{"AWS_ACCESS_KEY_ID": "AKWEIR", "AWS_SECRET_ACCESS_KEY": "of weir", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "HOME": t.TempDir()} {
		t.Setenv(name, v)
	}
	m := newMailbox(t, "always", "    aws: {service: dynamodb, region: eu-west-1}", "")
	const client = "Authorization: AWS4-HMAC-SHA256 Credential=AKTELLNOBODY/20200101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	send := func(target, key string) (string, string) {
		_, r, text := m.post("/box/", `{"TableName":"t"}`, client, "X-Amz-Date: 20200101T000000Z", "X-Amz-Security-Token: tell-nobody", "X-Amz-Target: DynamoDB_20120810."+target, "Content-Type: application/x-amz-json-1.0", "Idempotency-Key: "+key)
		return r.ID, text
	}
	id, text := send("DeleteTable", "k")
	if id == "" {
		t.Fatal(text)
	}
	m.becomes(id, delivery.Completed)
	got := m.letters()[0].Header
	if at, err := time.Parse("20060102T150405Z", got.Get("X-Amz-Date")); err != nil || time.Since(at) > time.Hour ||
		!strings.Contains(got.Get("Authorization"), "Credential=AKWEIR/") || got.Get("X-Amz-Target") != "DynamoDB_20120810.DeleteTable" || got.Get("X-Amz-Security-Token") != "" {
		t.Errorf("sent with %v", got)
	}
	if m.stores("AKTELLNOBODY") || m.stores("tell-nobody") || m.stores("AKWEIR") {
		t.Error("a signature or a key is stored")
	}
	if _, text := send("CreateTable", "k"); !strings.Contains(text, "IDEMPOTENCY_KEY_REUSED") {
		t.Errorf("another operation under the same key: %s", text)
	}
	if _, r, text := m.post("/box/", "x", "Authorization: Bearer tell-nobody"); r.ID != "" || !strings.Contains(text, "credentials are not stored") {
		t.Errorf("a key that is no signature: %s", text)
	}
	if _, r, text := m.post("/box/k", "x", client, "X-Amz-Server-Side-Encryption-Customer-Key: tell-nobody"); r.ID != "" || !strings.Contains(text, "credentials are not stored") {
		t.Errorf("a key to encrypt with: %s", text)
	}
}

// A delivery must not outlive the token of its caller. A request that could is refused, and other deliveries expire
// with the token.
func TestADeliveryDoesNotOutliveItsToken(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	m := newMailbox(t, "always", "    credentials: {Authorization: WEIR_TEST_CREDENTIAL}\n    deliver_schedule: messaging", "")
	token := func(left time.Duration) string {
		claims := fmt.Sprintf(`{"sub":"a","exp":%d}`, time.Now().Add(left).Unix())
		return "Authorization: Bearer eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	before := func(left time.Duration) string {
		return "Weir-Deliver-Before: " + time.Now().Add(left).UTC().Format(time.RFC3339)
	}
	for name, tt := range map[string]struct {
		headers []string
		status  int
	}{
		"it has ended":                       {[]string{token(-time.Minute)}, 400},
		"it ends within the schedule":        {[]string{token(5 * time.Second)}, 400},
		"it ends before the delivery does":   {[]string{token(time.Hour), before(2 * time.Hour)}, 400},
		"it ends before the delivery begins": {[]string{token(time.Hour), "Weir-Not-Before: " + time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)}, 400},
		"it lasts":                           {[]string{token(time.Hour)}, 202},
		"it lasts longer":                    {[]string{token(time.Hour), before(time.Minute)}, 202},
		"it is no token that ends":           {[]string{"Authorization: Bearer a.b.c"}, 202},
	} {
		resp, r, text := m.post("/box/x", "x", tt.headers...)
		if resp.StatusCode != tt.status || tt.status == 400 && !strings.Contains(text, "token expires") {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, text, tt.status)
		}
		if name == "it lasts" {
			d, err := m.run.deliveries.Get(t.Context(), r.ID)
			if left := time.Until(d.Expires); err != nil || left > time.Hour || left < 50*time.Minute || !d.TokenEnds.Equal(d.Expires) {
				t.Errorf("its delivery ends in %v: %v", left, err)
			}
		}
	}
}

// A caller's own expiry has precedence over the later expiry of its token.
func TestTheCallersOwnEndCounts(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	m := newMailbox(t, "always", "    credentials: {Authorization: WEIR_TEST_CREDENTIAL}\n    deliver_schedule: messaging", "")
	claims := fmt.Sprintf(`{"sub":"a","exp":%d}`, time.Now().Add(time.Hour).Unix())
	token := "Authorization: Bearer eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	_, r, text := m.post("/box/x", "x", token, "Weir-Deliver-Before: "+time.Now().Add(5*time.Minute).UTC().Format(time.RFC3339))
	d, err := m.run.deliveries.Get(t.Context(), r.ID)
	if left := time.Until(d.Expires); err != nil || left > 5*time.Minute || !d.TokenEnds.After(d.Expires) {
		t.Errorf("it ends in %v, want 5m: %v, %s", left, err, text)
	}
}

// A request is refused if its condition or body range would be lost, because its meaning would change.
func TestConditionsAreNotLost(t *testing.T) {
	m := newMailbox(t, "always", "    deliver_headers: [If-Match]", "")
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Content-Range", "X-HTTP-Method-Override"} {
		if resp, _, text := m.post("/box/x", "x", name+": 1"); resp.StatusCode != 400 || !strings.Contains(text, "the request depends on it") {
			t.Errorf("%s: %d %s, want 400", name, resp.StatusCode, text)
		}
	}
	if resp, _, text := m.post("/box/x", "x", "If-Match: 1"); resp.StatusCode != 202 {
		t.Errorf("a condition that is kept: %d %s", resp.StatusCode, text)
	}
}
