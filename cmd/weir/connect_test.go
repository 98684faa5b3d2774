package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// begin initializes a new store.
func begin(t *testing.T, url string) {
	t.Helper()
	s, err := redisstore.Open(url, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	eventually(t, "an answer", func() bool {
		_, err := s.Beat(t.Context(), &fleet.Beat{Group: "up", Client: "c", Seq: 1, Silence: 1, Life: 1})
		return err == nil
	})
}

// weir check -connect tests the store, the upstreams and the secrets. It prints what is wrong with each, and fails if anything
// is.
func TestCheckConnectTriesWhatTheFileNames(t *testing.T) {
	good := httptest.NewServer(http.NotFoundHandler())
	defer good.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	known, locked := servers.Redis(t), servers.Redis(t, "--requirepass", "correct")
	begun := servers.Redis(t)
	ups := func(url string) string {
		return "upstreams: {up: {url: " + url + ", limits: {all: 5/s}}}"
	}
	letters := func(name string) string {
		return "deliveries: {file: " + name + "}\n" + ups(good.URL)
	}
	dir := t.TempDir()
	kept, held, foreign := filepath.Join(dir, "kept.db"), filepath.Join(dir, "held.db"), filepath.Join(dir, "foreign.db")
	for _, name := range []string{kept, held} {
		s, err := sqlite.Open(t.Context(), name, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if name == held {
			defer s.Close()
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(foreign, []byte(strings.Repeat("dear diary ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	begin(t, begun.URL())
	for _, c := range []struct {
		name, yaml string
		init       bool
		bad        bool
		says       []string
	}{
		{"all well", "store: {redis: " + known.URL() + "}\n" + ups(good.URL), true, false, []string{"good  store redis: answers in", "it has the usage of the limits of up", "good  upstream up: 127.0.0.1"}},
		{"a new store", "store: {redis: " + servers.Redis(t).URL() + "}\n" + ups(good.URL), false, false, []string{"good  store redis", "its clock, which limits use, is", "it is new or was emptied, and has no record of the limits of up", "they count as used up", "(up's all) until 20", "weir store init"}},
		{"a cold store", "store: {redis: " + begun.URL() + "}\n" + ups(good.URL), false, false, []string{"good  store redis", "it is cold", "up (all until 20", "weir store init"}},
		{"a password", "store: {redis: " + locked.URL() + "}\n" + ups(good.URL), false, true, []string{"bad   store redis", "requires a password", "1 of 2 connections"}},
		{"a wrong password", "store: {redis: " + locked.URL() + ", password_env: PASSWORD}\n" + ups(good.URL), false, true, []string{"bad   store redis", "does not accept the user or the password"}},
		{"no store", "store: {redis: redis://127.0.0.1:1}\n" + ups(good.URL), false, true, []string{"bad   store redis", "refused"}},
		{"nobody there", ups("http://127.0.0.1:1"), false, true, []string{"bad   upstream up: 127.0.0.1:1: ", "connection refused"}},
		{"no such name", ups("http://nowhere.invalid"), false, true, []string{"bad   upstream up: nowhere.invalid:80: "}},
		{"no trust", ups(untrusted.URL), false, true, []string{"bad   upstream up: ", "does not trust the certificate's authority"}},
		{"no TLS", ups(strings.Replace(good.URL, "http:", "https:", 1)), false, true, []string{"the server does not speak TLS: is it http?"}},
		{"deliveries", letters(kept), false, false, []string{"good  deliveries file: " + kept + " can be read and written; its schema has version"}},
		{"deliveries to come", letters(filepath.Join(dir, "new.db")), false, false, []string{"new.db can be created"}},
		{"deliveries of a weir that runs", letters(held), false, false, []string{"warn  deliveries file: a running weir has it open"}},
		{"deliveries in a file of something else", letters(foreign), false, true, []string{"bad   deliveries file: ", "not a file of deliveries"}},
		{"deliveries nowhere", letters(filepath.Join(dir, "none", "d.db")), false, true, []string{"bad   deliveries file: ", "no such file or directory"}},
		{"a secret", "notify: {webhook_env: HOOK, webhook_secret_env: SECRET}\n" + ups(good.URL), false, true, []string{"notify.webhook_env: environment variable HOOK is not set", "good  environment SECRET"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "weir.yaml")
			if err := os.WriteFile(file, []byte(c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) {
				v, ok := map[string]string{"PASSWORD": "wrong", "SECRET": "0123456789abcdef0123456789abcdef"}[name]
				return v, ok
			}
			var out bytes.Buffer
			if c.init {
				if err := run(t.Context(), world{args: []string{"store", "init", "-config", file}, out: &out, err: &out, env: env}); err != nil {
					t.Fatal(err)
				}
				out.Reset()
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := run(ctx, world{args: []string{"check", "-connect", file}, out: &out, err: &out, env: env})
			if (cli.Exit("weir", err, io.Discard) != 0) != c.bad {
				t.Errorf("it ends with %v", err)
			}
			for _, text := range c.says {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, out.String())
				}
			}
			if strings.Contains(out.String(), "it is cold") && c.init {
				t.Errorf("a store that is known to be new is said to be cold:\n%s", out.String())
			}
		})
	}
	for name, want := range map[string]bool{"kept.db": true, "foreign.db": true, "foreign.db.lock": false, "new.db": false, "new.db.lock": false, "none": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %t", name, !want)
		}
	}
}
