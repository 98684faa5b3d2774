package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// Users create the tables of a database, test it, and manage its dead letters without a running weir.
func TestADatabaseByHand(t *testing.T) {
	db, ca := servers.PostgresTLS(t, "open sesame")
	url := strings.Replace(servers.Patient(db.PostgresURL()), "sslmode=disable", "sslmode=verify-full&sslrootcert="+ca, 1)
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte("deliveries: {postgres: {url: '"+url+"', password_env: DELIVERIES}}\nupstreams: {box: {url: '"+up.URL+"', routes: [{path: /, deliver: true}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	password := "open sesame"
	says := func(want string, fails bool, args ...string) {
		t.Helper()
		var out bytes.Buffer
		err := run(t.Context(), world{args: args, out: &out, err: &out, env: func(name string) (string, bool) { return password, name == "DELIVERIES" && password != "" }})
		if err != nil {
			out.WriteString(err.Error())
		}
		if (err != nil) != fails || !strings.Contains(out.String(), want) || password != "" && strings.Contains(out.String(), password) {
			t.Errorf("weir %s: want %q:\n%s", strings.Join(args, " "), want, &out)
		}
	}
	says("bad   deliveries postgres: deliveries in postgres at 127.0.0.1", true, "check", "-connect", file)
	says("run weir store init", true, "check", "-connect", file)
	says("run weir store init", true, "dead", "list", "-config", file)
	says("its tables were created", false, "store", "init", "-config", file)
	says("nothing had to be changed", false, "store", "init", "-config", file)
	says("good  deliveries postgres: answers in", false, "check", "-connect", file)

	s, err := postgres.New(postgres.Options{URL: url, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []string
	for range 3 {
		d, _, err := s.Accept(t.Context(), &delivery.Request{Upstream: "box", Method: "POST", Path: "/x"})
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "box", Lease: time.Minute})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if lost, err := s.End(t.Context(), delivery.End{Claim: all[0].Claim(), To: delivery.Failed, Reason: delivery.Rejected, Detail: "no such box"}); err != nil || len(lost) > 0 {
			t.Fatal(lost, err)
		}
		ids = append(ids, d.ID)
	}
	says(ids[2], false, "dead", "list", "-config", file)
	says("no such box", false, "dead", "show", "-config", file, ids[0])
	says("1 redriven", false, "dead", "redrive", "-config", file, ids[0])
	says("2 dropped", false, "dead", "drop", "-config", file, "-reason", "rejected")
	if d, err := s.Get(t.Context(), ids[0]); err != nil || d.Status != delivery.Queued || d.Series != 2 {
		t.Errorf("what was redriven is %s of series %d: %v", d.Status, d.Series, err)
	}
	password = "open barley"
	says("password authentication failed", true, "check", "-connect", file)
	password = ""
	says("environment variable DELIVERIES is not set", true, "check", "-connect", file)
}
