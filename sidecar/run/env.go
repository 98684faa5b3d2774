package run

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Variable is the environment variable with the directory of the run. weir commands that the command starts read it.
const Variable = "WEIR_RUN"

// childEnv returns the environment of the command.
func (r *running) childEnv() ([]string, error) {
	e := &environment{of: slices.Clone(r.Env)}
	proxy := r.proxy.URL()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} { // curl reads only the lower-case http_proxy
		e.set(name, proxy)
	}
	for _, name := range []string{"ALL_PROXY", "all_proxy"} {
		e.unset(name)
	}
	direct := noProxy(r.lookup)
	e.set("NO_PROXY", direct)
	e.set("no_proxy", direct)
	e.set("NODE_USE_ENV_PROXY", "1")
	e.set(Variable, r.dir)
	if err := e.trust(r.dir, r.proxy.CA(), r.lookup); err != nil {
		return nil, err
	}
	for _, b := range baseURLs {
		if v, set := r.lookup(b.variable); (!set || r.outer(v)) && r.hosts.urls[b.upstream] != nil {
			e.set(b.variable, r.proxy.Base(b.upstream)+b.path)
		}
	}
	if _, set := r.lookup("ENABLE_TOOL_SEARCH"); !set {
		e.set("ENABLE_TOOL_SEARCH", "true") // Claude Code disables it for unknown hosts
	}
	return e.of, nil
}

// outer reports whether a base URL leads to the proxy of the run around this one. The calls reach it through this run.
func (r *running) outer(base string) bool {
	if _, nested := r.lookup(Variable); !nested {
		return false
	}
	proxy, _ := r.lookup("HTTPS_PROXY")
	at, err := url.Parse(base)
	through, errProxy := url.Parse(proxy)
	return err == nil && errProxy == nil && at.Host != "" && at.Host == through.Host
}

// baseURLs lists variables with base URLs of clients that may ignore proxy settings.
var baseURLs = []struct{ variable, upstream, path string }{
	{"OPENAI_BASE_URL", "openai", "/v1"},
	{"ANTHROPIC_BASE_URL", "anthropic", ""},
	{"GOOGLE_GEMINI_BASE_URL", "gemini", ""},
}

// noProxy returns the hosts that the command calls without a proxy: the user's list and this machine.
func noProxy(env func(string) (string, bool)) string {
	const local = "localhost,127.0.0.1,::1"
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		if v, _ := env(name); v != "" {
			return v + "," + local
		}
	}
	return local
}

// An environment is a list of NAME=VALUE.
type environment struct{ of []string }

func (e *environment) set(name, value string) {
	e.unset(name)
	e.of = append(e.of, name+"="+value)
}

func (e *environment) unset(name string) {
	e.of = slices.DeleteFunc(e.of, func(s string) bool {
		key, _, _ := strings.Cut(s, "=")
		return key == name
	})
}

// trust writes the bundles of authorities that the command trusts. Each contains the authorities that its variable
// named before, and the authority of the run.
func (e *environment) trust(dir string, ca []byte, env func(string) (string, bool)) error {
	written := make(map[string]string) // the path of a bundle, by its source
	for _, v := range trustVariables {
		path, _ := env(v.name)
		if path == "" && !v.adds {
			path, _ = env("SSL_CERT_FILE")
			if path == "" {
				path = systemBundle()
			}
		}
		if written[path] == "" {
			bundle, err := readBundle(path)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			file := filepath.Join(dir, "trust-"+string(rune('a'+len(written)))+".pem")
			if err := os.WriteFile(file, append(bundle, ca...), 0o600); err != nil {
				return err
			}
			written[path] = file
		}
		e.set(v.name, written[path])
	}
	return nil
}

// trustVariables lists variables that name files with authorities. With adds, a client trusts them in addition to its
// other authorities. Otherwise they replace those.
var trustVariables = []struct {
	name string
	adds bool
}{
	{"SSL_CERT_FILE", false}, // OpenSSL, Go
	{"CURL_CA_BUNDLE", false},
	{"GIT_SSL_CAINFO", false},
	{"REQUESTS_CA_BUNDLE", false},
	{"PIP_CERT", false},
	{"HTTPLIB2_CA_CERTS", false},
	{"AWS_CA_BUNDLE", false},
	{"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", false},
	{"CARGO_HTTP_CAINFO", false},
	{"npm_config_cafile", false},
	{"NIX_SSL_CERT_FILE", false},
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", false},
	{"NODE_EXTRA_CA_CERTS", true},
	{"DENO_CERT", true},
}
