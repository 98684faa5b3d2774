// Package config reads weir.yaml: which upstreams there are, how requests find
// them, and the policy of each. Load reports every mistake of a file at once,
// each with its line, its field and what to write instead.
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

// A File is what a configuration says, its defaults filled in.
type File struct {
	Listen      string   // host:port
	Admin       string   // host:port of metrics and status; "" if it is off
	TLS         *TLS     // nil means plain HTTP
	Hosts       []string // names of loopback addresses, besides localhost and the hosts of routes
	Origins     []string // of pages that may use weir's credentials
	Open        bool     // callers from elsewhere may use weir's credentials although nobody knows them
	Callable    Access   // who may call
	AdminAccess Access   // who may use the admin listener
	Secrets     []Secret // what it wants of the environment
	HashEnv     string   // the variable with the secret that hides the values of scopes
	Harmless    []string // scopes that are not hidden
	AdminAll    bool     // for its metrics and health, too
	AdminTLS    bool     // it is served with the certificate of TLS
	Drain       time.Duration
	LameDuck    time.Duration
	Bounds      Bounds // of each listener
	MaxHeader   int64
	Log         slog.Level
	LogEach     int  // lines a second that say the same; 0 means all
	LogAttempts bool // a line for each attempt

	OldMetricNames bool                         // metrics have their former names, too
	Upstreams      []proxy.Upstream             // in the order of the file
	Sends          map[string]map[string]string // of the upstreams to which weir adds credentials: headers, and the variables with their values
	AWS            map[string]AWS               // of the upstreams that are services of AWS, by name
	Jobs           map[string]Jobs              // of the upstreams whose jobs are bounded, by name
	LLM            map[string]LLM               // of the upstreams that are language models, by name
	Counted        map[string]bool              // the upstreams, no language models, whose requests are charged to their callers
	Callers        *Callers                     // nil means that callers may have what there is
	Prices         string                       // a file; "" means what weir knows
	CloudWatch     *CloudWatch                  // nil means that no metrics go there
	Notify         *Notify                      // nil means that nobody is told
	Traces         *Traces                      // nil means that calls are not traced
	Metrics        *Metrics                     // nil means that metrics are sent nowhere by OTLP
	Store          *Store                       // nil means that limits are this process's own
	Deliveries     *Deliveries                  // nil means that nothing is delivered later
	Decide         *Decide                      // nil means that nothing is decided for others

	// Places says of every upstream where each of its fields stands: "limits.put" at "weir.yaml:12", or at "preset s3 (weir.yaml:7)".
	Places map[string]map[string]string

	text    *wasRead   // what it was read from
	removed doc.Errors // the fields that are removed or renamed
}

// TLS names the files of a certificate. Paths in the configuration are relative
// to its own directory; these can be opened as they are.
type TLS struct{ Cert, Key string }

// Upstream is a part of a file that the sidecar takes as it is. Every upstream has at
// least one route, in small letters and with a slash at either end of its path;
// no two routes of a file are the same.
type Upstream = proxy.Upstream

// maxFile is far more than anyone writes by hand.
const maxFile = 1 << 20

// Load reads a file. Mistakes in it are doc.Errors; that it cannot be read is the
// error of package os. env is os.LookupEnv, or nil for no variables.
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

// Parse is Load for what has been read already. name is the file's path, for
// complaints and for paths relative to it; certificates are not looked at.
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

// parse makes of the data what can be made of it; result says whether that is
// worth anything.
func (d *decoder) parse(data []byte, env func(string) (string, bool)) (*node, *File) {
	root := d.Read(data)
	if len(d.Errs) > 0 { // what cannot be read has no fields to complain of
		return root, &File{}
	}
	removed := replaceRemoved(root)
	d.lookup = func(name string) (string, bool) {
		if env == nil {
			return "", false
		}
		return env(name)
	}
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
