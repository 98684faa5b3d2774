package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// parse reads a file that must have no errors.
func parse(t *testing.T, text string, env ...string) *File {
	t.Helper()
	f, err := Parse("weir.yaml", []byte(text), setting(env))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f
}

// setting returns an environment from alternating names and values.
func setting(env []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(env); i += 2 {
			if env[i] == name {
				return env[i+1], true
			}
		}
		return "", false
	}
}

func TestDefaults(t *testing.T) {
	got := parse(t, "upstreams: {a: {url: https://h}}")
	u := got.Upstreams[0]
	if u.URL.String() != "https://h" {
		t.Errorf("url %v", u.URL)
	}
	if p := got.Places["a"]["url"]; p != "weir.yaml:1" {
		t.Errorf("the url stands at %q", p)
	}
	got.Upstreams[0].URL, got.Places, got.text = nil, nil, nil
	want := &File{
		Listen: "127.0.0.1:8080", Admin: "127.0.0.1:8081", Drain: 30 * time.Second, MaxHeader: 64 << 10, Log: slog.LevelInfo, LogEach: 10,
		Upstreams: []Upstream{{Name: "a", Routes: []proxy.Route{{Path: "/a/", Strip: true}}, Replay: httpx.DefaultReplay, Policy: weir.Policy{Concurrency: weir.Concurrency{Auto: true}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFile(t *testing.T) {
	f := parse(t, `
listen: "[::1]:80"
admin: off
drain: off
lame_duck: 7s
max_header: 1MiB
log: debug
log_each_second: off
log_attempts: true
tls: {cert: c.pem, key: /k.pem}
upstreams:
  a:
    url: https://h:8443/base
    replay: 0
    max_wait: off
    keys: {tenant: "header:x-tenant", user: "query:u", from: remote}
    limits: off
    routes: [{host: A.Example, path: /x, strip: yes}, {path: /}]
`)
	u := f.Upstreams[0]
	for _, c := range []struct{ name, got, want any }{
		{"listen", f.Listen, "[::1]:80"},
		{"admin", f.Admin, ""},
		{"drain", f.Drain, time.Duration(0)},
		{"lame_duck", f.LameDuck, 7 * time.Second},
		{"max_header", f.MaxHeader, int64(1 << 20)},
		{"log", f.Log, slog.LevelDebug},
		{"log_each_second", f.LogEach, 0},
		{"log_attempts", f.LogAttempts, true},
		{"tls", *f.TLS, TLS{"c.pem", "/k.pem"}},
		{"replay", u.Replay, int64(-1)},
		{"max_wait", u.Policy.MaxWait, time.Duration(-1)},
		{"off", len(u.Policy.Limits), 0},
		{"keys", u.Keys, map[string]httpx.Source{"tenant": {Kind: httpx.FromHeader, Name: "X-Tenant"}, "user": {Kind: httpx.FromQuery, Name: "u"}, "from": {Kind: httpx.FromRemote, Name: ""}}},
		{"routes", u.Routes, []proxy.Route{{Host: "a.example", Path: "/x/", Strip: true}, {}}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, c.got, c.want)
		}
	}
}

func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/weir.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Parse, because the examples have no certificate files.
		f, err := Parse(file, data, nil)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		accepted(t, f)
	}
}

// accepted checks that package weir accepts every policy.
func accepted(t *testing.T, f *File) {
	t.Helper()
	for _, u := range f.Upstreams {
		if _, err := weir.New(u.Name, u.Policy, weir.Options{}); err != nil {
			t.Errorf("%v", err)
		}
		if u.URL == nil || len(u.Routes) == 0 {
			t.Errorf("%s: url %v, routes %v", u.Name, u.URL, u.Routes)
		}
	}
}

func TestAliasesAndMergeKeys(t *testing.T) {
	f := parse(t, `
upstreams:
  a: &a
    url: https://h
    limits: &limits {l: 5/s}
  b: {<<: *a, url: https://i}
  c: {url: https://j, limits: *limits}
  d: {<<: [{url: https://k}, *a], max_wait: 1s}
`)
	for i, want := range []string{"https://h", "https://i", "https://j", "https://k"} {
		u := f.Upstreams[i]
		if u.URL.String() != want || len(u.Policy.Limits) != 1 {
			t.Errorf("%s: %v with %v, want %s with a limit", u.Name, u.URL, u.Policy.Limits, want)
		}
	}
}

func TestLargeInputIsRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 9) + "*" + p + "]\n"
	}
	named := "upstreams: {a: {url: https://h, limits: {" + strings.Repeat("l%: 1/s, ", 1200) + "}}}"
	for i := 1200; i > 0; i-- {
		named = strings.Replace(named, "%", strings.Repeat("x", i%60)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"file", strings.Repeat("#", maxFile+1), "is larger than 8 MiB"},
		{"aliases", bomb, "more than 500000 values"},
		{"depth", strings.Repeat("[", 500) + strings.Repeat("]", 500), "nested too deeply"},
		{"deeper", strings.Repeat("[", 20_000), "broken YAML"},
		{"names", named, "has 1200 entries; at most 1000 are allowed"},
	} {
		if _, err := Parse("weir.yaml", []byte(c.text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v, want %q", c.name, err, c.want)
		}
	}
}

// A file can have 10,000 upstreams, each with a preset and a limit.
func TestManyUpstreams(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	var text strings.Builder
	text.WriteString("upstreams:\n")
	for i := range mostUpstreams {
		fmt.Fprintf(&text, "  u%d:\n    preset: http\n    url: https://u%d.example.com/\n    routes: [{path: /teams/u%d/}]\n    limits: {all: {rate: 100/s, burst: 200}}\n", i, i, i)
	}
	f, err := Parse("weir.yaml", []byte(text.String()), nil)
	if err != nil {
		t.Fatalf("%.300v", err)
	}
	last := f.Upstreams[len(f.Upstreams)-1]
	if len(f.Upstreams) != mostUpstreams || last.Name != "u9999" || last.Routes[0].Path != "/teams/u9999/" || len(last.Policy.Limits) != 1 || last.Policy.Retry.Attempts < 2 {
		t.Errorf("%d upstreams, the last is %+v", len(f.Upstreams), last)
	}
	if _, err := Parse("weir.yaml", []byte(text.String()+"  more: {url: https://h}\n"), nil); err == nil || !strings.Contains(err.Error(), "at most 10000 are allowed") {
		t.Errorf("one more: %.300v", err)
	}
}

func TestComplaintsAreErrors(t *testing.T) {
	_, err := Parse("weir.yaml", []byte("upstreams:\n  a: {url: 5, max_wait: 1}\n"), nil)
	all, ok := errors.AsType[doc.Errors](err)
	if !ok || len(all) != 2 {
		t.Fatalf("got %v, want two complaints", err)
	}
	first, ok := errors.AsType[doc.Complaint](err)
	if !ok || first.Line != 2 || first.Column != 12 || first.Field != "upstreams.a.url" || first.Hint == "" {
		t.Errorf("got %+v", first)
	}
}

func TestNoPasswordInComplaints(t *testing.T) {
	for _, u := range []string{"https://me:hunter2@h", "http://me:hunter2@", "ftp://me:hunter2@h", "https://me:hunter2@h:port", "me:hunter2@h"} {
		_, err := Parse("weir.yaml", []byte("upstreams:\n  a: {url: '"+u+"'}\n"), nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", u, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.yaml")
	write(t, path, "tls: {cert: cert.pem, key: key.pem}\nupstreams: {a: {url: https://h}}\n")
	_, err := Load(path, nil)
	if err == nil || strings.Count(err.Error(), "no such file") != 2 || !strings.HasPrefix(err.Error(), path+":1:13: tls.cert: ") {
		t.Errorf("without certificate: %v", err)
	}

	cert, key := certificate(t)
	write(t, filepath.Join(dir, "cert.pem"), cert)
	write(t, filepath.Join(dir, "key.pem"), key)
	f, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (TLS{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}); *f.TLS != want {
		t.Errorf("tls %+v, want %+v", *f.TLS, want)
	}

	_, other := certificate(t)
	write(t, filepath.Join(dir, "key.pem"), other)
	if _, err := Load(path, nil); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("with the key of another: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without file: %v", err)
	}
	if _, err := Load(dir, nil); err == nil {
		t.Error("a directory was read")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weir"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", secret)
}
