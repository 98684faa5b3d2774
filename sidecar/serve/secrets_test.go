package serve

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
)

// A request with a credential in a stored header is refused. A header whose name only looks like a credential passes.
func TestHeadersThatHoldCredentialsAreNotStored(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	for _, header := range []string{
		"Click: https://box.example/?token=tell-nobody", "Click: https://ann:tell-nobody@box.example/", "Icon: https://box.example/a.png?sig=tell-nobody",
		"Actions: http, Open, https://box.example/, headers.Authorization=Bearer tell-nobody",
		`Actions: [{"action":"http","url":"https://box.example/","headers":{"X-Api-Key":"tell-nobody"}}]`,
		"X-Session-Id: tell-nobody", "X-Auth: tell-nobody", "Xauth: tell-nobody",
	} {
		if resp, _, text := m.post("/box/x", "x", header); resp.StatusCode != 400 || !strings.Contains(text, "not stored") || strings.Contains(text, "tell-nobody") {
			t.Errorf("%s: %d %s, want 400", header, resp.StatusCode, text)
		}
	}
	resp, r, text := m.post("/box/x?author=ann&keyword=dam", "x", "Click: https://box.example/?author=ann", "Actions: view, Open, https://box.example/keys/1", "Idempotency-Key: k", "Weir-Order-Key: o")
	if resp.StatusCode != 202 {
		t.Fatalf("what holds none: %d %s", resp.StatusCode, text)
	}
	m.becomes(r.ID, delivery.Completed)
	if m.stores("tell-nobody") {
		t.Error("a credential is stored")
	}
}

// A replayed answer contains neither the first caller's cookie nor a repeated credential. Neither is stored.
func TestKeptAnswersHoldNoCredentials(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	o := newOnce(t, "", "    credentials: {X-Api-Key: WEIR_TEST_CREDENTIAL}")
	o.says(func(w http.ResponseWriter, _ int64) {
		w.Header().Set("Set-Cookie", "id=tell-nobody")
		w.Header().Set("X-Echo", "it was of-the-caller")
		w.Header().Set("X-Echo-Of-Weir", "of-weir-itself")
		w.Header().Set("X-Number", "1")
	})
	const shown = "Authorization: Bearer of-the-caller"
	if first := o.wants("the first", "k", "one", 200, "", shown); first.Header.Get("Set-Cookie") == "" || first.Header.Get("X-Echo") == "" {
		t.Errorf("the first answer: %v", first.Header)
	}
	again := o.wants("again", "k", "one", 200, "", shown)
	for _, name := range []string{"Set-Cookie", "X-Echo", "X-Echo-Of-Weir"} {
		if again.Header.Get(name) != "" {
			t.Errorf("%s is given again", name)
		}
	}
	if again.Header.Get("X-Number") != "1" || o.stores("tell-nobody") || o.stores("of-the-caller") || o.stores("of-weir-itself") {
		t.Errorf("given again with %v, or a credential is stored", again.Header)
	}
}

// If a server repeats its request, callers do not see weir's credentials.
func TestAnswersToAttemptsHideOurCredentials(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	m := newMailbox(t, "always", "    credentials: {Authorization: WEIR_TEST_CREDENTIAL}", "")
	m.echo = true
	_, r, _ := m.post("/box/x", "x")
	m.becomes(r.ID, delivery.Completed)
	_, _, text := m.send("GET", "/-/weir/v1/deliveries/"+r.ID, "")
	if !strings.Contains(text, `"answer":"***`) || strings.Contains(text, "of-weir-itself") || m.stores("of-weir-itself") {
		t.Errorf("shown as %s", text)
	}
}

// A credential that begins in the stored part of an answer is masked completely, even if it ends after that part.
func TestTheBeginningOfACredentialIsHidden(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	m := newMailbox(t, "always", "    credentials: {Authorization: WEIR_TEST_CREDENTIAL}", "")
	m.echo = true
	for _, m.pad = range []int{delivery.MaxAnswer - len("of-weir"), delivery.MaxAnswer - 1, delivery.MaxAnswer, delivery.MaxAnswer + 1} {
		_, r, _ := m.post("/box/x", "x")
		m.becomes(r.ID, delivery.Completed)
		all, err := m.run.deliveries.Attempts(t.Context(), r.ID)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		want := strings.Repeat("x", min(m.pad, delivery.MaxAnswer))
		if m.pad < delivery.MaxAnswer {
			want = (want + "***")[:min(len(want)+3, delivery.MaxAnswer)]
		}
		if got := string(all[0].Answer); got != want {
			t.Errorf("%d before it: %d bytes that end with %q, want %d", m.pad, len(got), got[max(0, len(got)-20):], len(want))
		}
	}
}

// A stored first answer has weir's credentials masked in its body, and the resulting length.
func TestFirstAnswersHideOurCredentials(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	m := newMailbox(t, "true, idempotency: keep", "    credentials: {Authorization: WEIR_TEST_CREDENTIAL}", "")
	m.echo = true
	for range 2 {
		m.post("/box/x", "x", "Idempotency-Key: k")
	}
	if _, _, text := m.post("/box/x", "x", "Idempotency-Key: k"); text != "***" || m.stores("of-weir-itself") {
		t.Errorf("kept as %q", text)
	}
	if n := len(m.letters()); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// The delivery headers are not forwarded with a direct request. A time that is too far in the past is refused.
func TestWhatIsSaidOfDeliveriesIsForWeir(t *testing.T) {
	m := newMailbox(t, "true", "", "")
	said := []string{"Weir-Not-Before: 2101-01-01T00:00:00Z", "Weir-Deliver-Before: 2102-01-01T00:00:00Z", "Weir-Order-Key: k"}
	if resp, _, text := m.post("/box/x", "x", said...); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	for name := range m.letters()[0].Header {
		if strings.HasPrefix(name, "Weir-") {
			t.Errorf("%s was sent on", name)
		}
	}
	for header, want := range map[string]string{
		"Weir-Deliver-Before: 0001-01-01T00:00:00Z":          "has passed",
		"Weir-Deliver-Before: 2001-01-01T00:00:00Z":          "has passed",
		"Weir-Deliver-Before: Mon, 01 Jan 2001 00:00:00 GMT": "has passed",
		"Weir-Not-Before: 0001-01-01T00:00:00Z":              "is too far in the past",
		"Weir-Not-Before: 2001-01-01T00:00:00Z":              "is too far in the past",
		"Weir-Not-Before: 9":                                 "want a time",
	} {
		if resp, _, text := m.post("/box/x", "x", async, header); resp.StatusCode != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", header, resp.StatusCode, text, want)
		}
	}
	for want, headers := range map[string][]string{"more than once": {"Weir-Order-Key: a", "Weir-Order-Key: b"}, "is empty": {"Weir-Order-Key: "}} {
		if resp, _, text := m.post("/box/x", "x", append(headers, async)...); resp.StatusCode != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", headers, resp.StatusCode, text, want)
		}
	}
	if resp, _, text := m.post("/box/x", "x", async, said[0], said[1], "Weir-Not-Before: 2101-01-02T00:00:00Z"); resp.StatusCode != 400 || !strings.Contains(text, "more than once") {
		t.Errorf("two instants: %d %s", resp.StatusCode, text)
	}
}
