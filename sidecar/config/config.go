// Package config reads weir.yaml: the upstreams, their routes, and the policy of each. Load reports all errors of a
// file together, each with its line, its field and a correction.
//
// docs/reference/configuration.md lists every field.
package config

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A File is a configuration with its defaults filled in.
type File struct {
	Listen      string   // host:port
	Admin       string   // host:port of metrics and status; "" means off
	TLS         *TLS     // nil means plain HTTP
	Hosts       []string // names for loopback addresses, besides localhost and the hosts of routes
	Origins     []string // of pages that may use weir's credentials
	Open        bool     // unauthenticated callers from other machines may use weir's credentials
	Callable    Access   // for callers
	AdminAccess Access   // for the admin listener
	Secrets     []Secret // secrets that the environment must provide
	HashEnv     string   // environment variable with the secret that hashes the values of scopes
	Harmless    []string // scopes that are not hashed
	AdminAll    bool     // also for metrics and health
	AdminTLS    bool     // the admin listener uses the certificate of TLS
	Drain       time.Duration
	LameDuck    time.Duration
	Bounds      Bounds // of each listener
	MaxHeader   int64
	Log         slog.Level
	LogEach     int  // equal lines per second; 0 means no limit
	LogAttempts bool // a line for each attempt

	OldMetricNames bool                         // also export metrics under their former names
	Upstreams      []proxy.Upstream             // in the order of the file
	Sends          map[string]map[string]string // by upstream: headers that weir adds, and the variables with their values
	AWS            map[string]AWS               // upstreams that are AWS services, by name
	Jobs           map[string]Jobs              // upstreams with a job limit, by name
	LLM            map[string]LLM               // upstreams that are language models, by name
	Counted        map[string]bool              // upstreams other than language models whose requests are charged to callers
	Callers        *Callers                     // nil means that callers have no limits
	Prices         string                       // path of a file; "" means the built-in prices
	CloudWatch     *CloudWatch                  // nil means that no metrics are sent there
	Notify         *Notify                      // nil means no notifications
	Traces         *Traces                      // nil means no traces
	Metrics        *Metrics                     // nil means that no metrics are sent by OTLP
	Store          *Store                       // nil means that limits are local to this process
	Deliveries     *Deliveries                  // nil means no deliveries
	Decide         *Decide                      // nil means no decisions for other programs

	// Places maps each upstream's fields to their position: "limits.put" to "weir.yaml:12" or "preset s3
	// (weir.yaml:7)".
	Places map[string]map[string]string

	text    *wasRead   // source of the file
	removed doc.Errors // fields that are removed or renamed
}

// TLS names the files of a certificate. Paths in the configuration are relative to its directory. The paths here can
// be opened as they are.
type TLS struct{ Cert, Key string }

// Upstream is the part of a file that the sidecar uses unchanged. Every upstream has at least one route, in lower
// case, whose path begins and ends with a slash. All routes of a file differ.
type Upstream = proxy.Upstream

// maxFile is the largest file that is read, in bytes.
const maxFile = 8 << 20

// Load reads a file. Errors in the file are doc.Errors. If the file cannot be read, Load returns the error of package
// os. env is os.LookupEnv, or nil for no variables.
func Load(path string, env func(string) (string, bool)) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	d := newDecoder(path)
	root, f := d.parse(data, env)
	d.checkCertificate(f.TLS, root)
	f.text = &wasRead{path, data, env}
	return d.result(f)
}

// Parse is like Load for data in memory. name is the file's path, for error messages and relative paths. Parse does
// not check certificates.
func Parse(name string, data []byte, env func(string) (string, bool)) (*File, error) {
	d := newDecoder(name)
	_, f := d.parse(data, env)
	f.text = &wasRead{name, data, env}
	return d.result(f)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// parse reads as much of the data as possible. result reports whether the configuration is usable.
func (d *decoder) parse(data []byte, env func(string) (string, bool)) (*node, *File) {
	root := d.Read(data)
	if len(d.Errs) > 0 { // data that cannot be parsed has no fields to check
		return root, &File{}
	}
	removed := replaceRemoved(root)
	d.lookup = func(name string) (string, bool) {
		if env == nil {
			return "", false
		}
		return env(name)
	}
	d.readPresets(root.Get("presets"))
	d.environment(root, env)
	f := d.read(root)
	f.removed = removed
	f.boundByDefault()
	f.settleLater()
	f.provisional()
	f.Secrets = findSecrets(root)
	d.check(root, f)
	return root, &f.File
}

func (d *decoder) result(f *File) (*File, error) {
	if len(d.Errs) > 0 {
		return nil, d.Errs.Sorted()
	}
	return f, nil
}
