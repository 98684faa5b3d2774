package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One line describes the behavior without the store.
func TestCheckSaysWhatHappensWithoutTheStore(t *testing.T) {
	for fields, want := range map[string]string{
		"": "while the redis store is unreachable: each process continues with its part of each limit for 10s, and keeps using it afterwards (an event, a metric and weir status report this); " +
			"a process that has never reached the store refuses calls\n",
		", outage: 90s, without: refuse": "while the redis store is unreachable: each process continues with its part of each limit for 1m30s, " +
			"and then refuses calls; a process that has never reached the store refuses calls\n",
		", without: 10%": "while the redis store is unreachable: each process continues with its part of each limit for 10s, and then with 10% of each limit; " +
			"a process that has never reached the store also uses that share (with 11 or more processes, limits can be exceeded)\n",
	} {
		file := filepath.Join(t.TempDir(), "weir.yaml")
		text := "store: {redis: \"redis://localhost:6379\"" + fields + "}\nupstreams: {up: {url: \"http://localhost:1\"}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		err := run(t.Context(), world{args: []string{"check", file}, out: &out, err: &said, env: noEnv})
		if err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %v\n%s%s", fields, err, &out, &said)
		}
	}
}

// Without --connect, check reports that it does not verify tables.
func TestCheckReportsThatTablesAreUnchecked(t *testing.T) {
	for text, want := range map[string]string{
		"store: {dynamodb: {table: weir, region: eu-west-1}}":                                                      "not checked without --connect: whether DynamoDB has the table weir and deletes its old items (TTL)\n",
		"store: {dynamodb: {table: weir, region: eu-west-1}}\ndeliveries: {aws: {table: sent, region: eu-west-1}}": "the table weir and the table sent and",
		"deliveries: {aws: {table: sent, region: eu-west-1}}":                                                      "has the table sent and",
		"store: {redis: \"redis://localhost:6379\"}":                                                               "",
	} {
		file := filepath.Join(t.TempDir(), "weir.yaml")
		if err := os.WriteFile(file, []byte(text+"\nupstreams: {up: {url: \"http://localhost:1\"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		err := run(t.Context(), world{args: []string{"check", file}, out: &out, err: &said, env: noEnv})
		if err != nil || !strings.Contains(out.String(), want) || want == "" && strings.Contains(out.String(), "not checked") {
			t.Errorf("%s: %v\n%s%s\nwant %q", text, err, &out, &said, want)
		}
	}
}

// check reports errors in referenced files that would keep serve from starting.
func TestCheckReadsTheFilesThatAreNamed(t *testing.T) {
	dir := t.TempDir()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	private, err := x509.MarshalPKCS8PrivateKey(secure.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cert.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})),
		"key.pem":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"bad.pem":  "nothing of the kind", "bad.yaml": "domain: edge\ndescriptors: [{key: tenant, rate_limit: {unit: hour, requests_per_unit: many}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const claims = "callers: {keys: {user: \"claim:sub\"}, claims: {key: %s}}\n"
	const rules = "decide: {grpc: 127.0.0.1:0, rules: %s}\n"
	const tls = "tls: {cert: cert.pem, key: key.pem}\n"
	for _, c := range []struct{ yaml, want string }{
		{fmt.Sprintf(claims, "gone.pem"), "callers: claims"},
		{fmt.Sprintf(claims, "bad.pem"), "callers: claims: want a public key in PEM"},
		{fmt.Sprintf(rules, "gone.yaml"), "decide: rules"},
		{fmt.Sprintf(rules, "bad.yaml"), "decide: rules"},
		{tls + "client_ca: gone.pem\n", "client_ca"},
		{tls + "admin_client_ca: bad.pem\n", "admin: client_ca"},
		{tls + "decide: {listen: 127.0.0.1:0, client_ca: bad.pem}\n", "decide: client_ca"},
		{tls + "client_ca: cert.pem\n", ""},
	} {
		file := filepath.Join(dir, "weir.yaml")
		if err := os.WriteFile(file, []byte(c.yaml+"upstreams: {up: {url: \"https://up.example\"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		err := run(t.Context(), world{args: []string{"check", file}, out: &out, err: &said, env: noEnv})
		if (err != nil) != (c.want != "") || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: %v\n%s%s\nwant %q", c.yaml, err, &out, &said, c.want)
		}
	}
}

// check warns of budgets that allow only few of their largest calls, and of prices that are probably meant for fewer tokens.
func TestCheckWarnsOfSmallBudgetsAndAbsurdPrices(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"dear.yaml": "models: {mine: {input: 1, output: 1000.01}, 'free*': {input: 0, output: 0}}", "usual.yaml": "models: {mine: {input: 1, output: 1000}}", "debt.yaml": "models: {mine: {input: -3, output: 15}}", "token.yaml": "models: {mine: {input: 3000000, output: 15}}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const money = "{amount: %s, every: day, unit: usd%s}"
	for _, c := range []struct{ yaml, warns, refuses string }{
		{"upstreams: {up: {preset: anthropic, limits: {money: " + fmt.Sprintf(money, "24.57", "") + "}}}",
			"warn  up: limit money: 24.57 USD is enough for fewer than 20 calls of claude-opus-4-1, because a call without max_tokens may cost 1.2288 USD: calls will wait", ""},
		{"upstreams: {up: {preset: anthropic, limits: {money: " + fmt.Sprintf(money, "24.58", "") + "}}}", "", ""},
		{"upstreams: {up: {preset: anthropic, limits: {money: " + fmt.Sprintf(money, "5", ", hold: most") + "}}}", "warn  up: limit money", ""},
		{"upstreams: {up: {preset: gemini, limits: {money: " + fmt.Sprintf(money, "5", "") + "}}}", "", ""},
		{"callers: {limits: {own: " + fmt.Sprintf(money, "3", ", scope: user") + "}}\nupstreams: {a: {preset: gemini}, b: {preset: openai}}",
			"warn  callers: limit own: 3.00 USD is enough for fewer than 20 calls of gpt-5.2,", ""},
		{"prices: dear.yaml\nupstreams: {up: {preset: openai}}", "dear.yaml: the price of mine is more than 1000 dollars per million tokens: check that it is not the price of fewer tokens", ""},
		{"prices: usual.yaml\nupstreams: {up: {preset: openai}}", "", ""},
		{"prices: debt.yaml\nupstreams: {up: {preset: openai}}", "", "models.mine.input: -3 is negative; write 0 if it costs nothing"},
		{"prices: token.yaml\nupstreams: {up: {preset: openai}}", "", "models.mine.input: 3000000 is more than 10000 dollars per million tokens"},
		{"upstreams: {up: {preset: openai, limits: {money: {rate: 5/h, unit: usd}}}}", "", "a budget has no rate: a rate refills continuously, so more than its amount could be spent"},
	} {
		file := filepath.Join(dir, "weir.yaml")
		if err := os.WriteFile(file, []byte(c.yaml+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		err := run(t.Context(), world{args: []string{"check", file}, out: &out, err: &said, env: noEnv})
		if (err != nil) != (c.refuses != "") || !strings.Contains(said.String(), c.refuses) || !strings.Contains(out.String(), c.warns) || strings.Contains(out.String(), "warn") != (c.warns != "") {
			t.Errorf("%s: %v\n%s%s\nwant %q%q", c.yaml, err, &out, &said, c.warns, c.refuses)
		}
	}
}

// The examples pass, and check describes the behavior of a fleet without its store.
func TestCheckPassesTheExamples(t *testing.T) {
	for example, want := range map[string]string{
		"minimal": "", "s3": "", "chat": "",
		"fleet": "while the redis store is unreachable: each process continues with its part of each limit for 2m0s, and then refuses calls; a process that has never reached the store refuses calls\n",
	} {
		var out, said bytes.Buffer
		env := func(name string) (string, bool) { return "secret", strings.HasSuffix(name, "_PASSWORD") }
		err := run(t.Context(), world{args: []string{"check", "../../examples/" + example + "/weir.yaml"}, out: &out, err: &said, env: env})
		if err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %v\n%s%s", example, err, &out, &said)
		}
	}
}

func TestCheckPassesTheDesigns(t *testing.T) {
	files, err := filepath.Glob("../../examples/designs/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files, %v; want 5", len(files), err)
	}
	env := func(name string) (string, bool) {
		return "0123456789abcdef0123456789abcdef", name == "HASH_SECRET" || name == "GEMINI_API_KEY"
	}
	for _, file := range files {
		var out, said bytes.Buffer
		if err := run(t.Context(), world{args: []string{"check", file}, out: &out, err: &said, env: env}); err != nil {
			t.Errorf("%s: %v\n%s%s", file, err, &out, &said)
		}
	}
}
