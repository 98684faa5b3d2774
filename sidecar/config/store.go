package config

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/doc"
)

// A Store configures where a fleet keeps its limits and breakers. One of Redis, DynamoDB, File and Memory is set.
type Store struct {
	Redis       string // URL without a password
	PasswordEnv string // environment variable with the password; "" means no password
	DynamoDB    *DynamoDB
	File        string // path
	Memory      bool

	Prefix string // of all names in the store

	Lease   time.Duration // negative means none
	Guard   time.Duration // 0 means the default of the kind
	Timeout time.Duration // 0 means the default of the kind
	Queue   int
	Outage  time.Duration // 0 means the default of package limit
	Without fleet.Without
}

// DynamoDB names a table.
type DynamoDB struct {
	Table    string
	Region   string // "" means the default of the AWS SDK
	Endpoint string // "" means the endpoint of the region
}

// Kind returns the name of the store's kind for display.
func (s *Store) Kind() string {
	switch {
	case s.Redis != "":
		return "redis"
	case s.DynamoDB != nil:
		return "dynamodb"
	case s.File != "":
		return "file"
	}
	return "memory"
}

// WithDefaults returns s with the guard and the timeout of its kind. Slower kinds have longer ones.
func (s Store) WithDefaults() Store {
	switch s.Kind() {
	case "dynamodb":
		s.Guard, s.Timeout = cmp.Or(s.Guard, 100*time.Millisecond), cmp.Or(s.Timeout, time.Second)
	case "file":
		s.Guard, s.Timeout = cmp.Or(s.Guard, 50*time.Millisecond), cmp.Or(s.Timeout, time.Second)
	}
	return s
}

// A shelf is a store while the file is read.
type shelf struct{ Store }

var storeFields = []field[shelf]{
	{"redis", "a URL", "none", "Redis 7 or Valkey: `redis://host:6379`, `rediss://` for TLS, `?master_set=NAME` for Sentinel, any node of a cluster. Set the password in `password_env`.", readRedis},
	one("password_env", word, func(s *shelf) *string { return &s.PasswordEnv }, "none", "Environment variable with the password."),
	{"dynamodb", "fields", "none", "DynamoDB table; `weir store init` creates it.", readDynamoDB},
	one("file", orOff(word, ""), func(s *shelf) *string { return &s.File }, "none", "File for one process: quotas, breakers and pauses survive a restart."),
	one("memory", boolean, func(s *shelf) *bool { return &s.Memory }, "false", "Shares nothing; callers of this process wait by priority."),
	one("prefix", word, func(s *shelf) *string { return &s.Prefix }, "weir", "Prefix of Redis keys. Fleets with different prefixes share nothing."),
	one("lease", orOff(duration, -1), func(s *shelf) *time.Duration { return &s.Lease }, "250ms",
		"How long a process may spend leased units; longer for limits per minute. `off` asks the store for every call."),
	one("guard", duration, func(s *shelf) *time.Duration { return &s.Guard }, "10ms; 100ms for dynamodb, 50ms for file",
		""),
	one("timeout", duration, func(s *shelf) *time.Duration { return &s.Timeout }, "100ms; 1s for dynamodb and file", ""),
	one("queue", count[int](1), func(s *shelf) *int { return &s.Queue }, "10000", ""),
	one("outage", duration, func(s *shelf) *time.Duration { return &s.Outage }, "10s",
		"How long the store reserves the part of a process that stopped responding; at least 5s. Processes cut off for longer may exceed the limit by their parts (see `without`)."),
	one("without", without, func(s *shelf) *fleet.Without { return &s.Without }, "part",
		"After `outage`, a cut-off process uses its last `part`, must `refuse`, or uses this share of each limit. A share also applies before the process first reaches the store."),
}

func readStore(d *decoder, n *node, f *document) {
	var s shelf
	if object(d, n, storeFields, &s); n.Kind != doc.Mapping {
		return
	}
	kinds := 0
	for _, name := range []string{"redis", "dynamodb", "file", "memory"} {
		if at := n.Get(name); at != nil && !isOff(at) {
			kinds++
		}
	}
	if kinds != 1 {
		d.Bad(n, "write store: {redis: redis://localhost:6379}", "needs one of redis, dynamodb, file and memory")
	}
	if at := n.Get("password_env"); at != nil && n.Get("redis") == nil {
		d.Bad(at, "", "password_env applies only to redis")
	}
	if s.File != "" {
		s.File = d.beside(filepath.FromSlash(s.File))
	}
	if at := n.Get("outage"); at != nil && s.Outage > 0 && s.Outage < leastOutage {
		d.Bad(at, "", "must be at least %v: a process detects an outage of the store after a second", leastOutage)
	}
	f.Store = &s.Store
}

const leastOutage = 5 * time.Second

// without reads how a process limits calls without the store.
var without = text("part, refuse or a share (10%, 0.1)", func(s string) (w fleet.Without, wrong, hint string) {
	switch strings.ToLower(s) {
	case "part":
		return w, "", ""
	case "refuse":
		return fleet.Without{Refuse: true}, "", ""
	}
	if w.Share, wrong, hint = parseShare(s); wrong == "want a share such as 10%" {
		wrong = "want part, refuse, or a share such as 10%"
	}
	return w, wrong, hint
})

// readRedis reads the URL. It never repeats text that may be a password.
func readRedis(d *decoder, n *node, s *shelf) {
	if isOff(n) {
		return
	}
	text, ok := d.Str(n, "a URL")
	if !ok {
		return
	}
	u, err := url.Parse(text)
	if err != nil {
		d.Bad(n, "write it as redis://host:6379", "is not a URL")
		return
	}
	_, secret := u.User.Password()
	switch {
	case secret:
		d.Bad(n, "name the environment variable that holds it in password_env", "must not contain a password")
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "valkey" && u.Scheme != "valkeys":
		d.Bad(n, "write it as redis://host:6379", "must begin with redis:// or rediss://")
	case u.Hostname() == "":
		d.Bad(n, "write it as redis://host:6379", "has no host")
	default:
		s.Redis = strings.Replace(text, u.Host, asciiHost(u.Host), 1)
	}
}

// tableName reads a valid name of a DynamoDB table (API reference of CreateTable, 2026-11).
var tableName = text("the name of a table", func(s string) (string, string, string) {
	if strings.HasPrefix(s, "arn:") {
		return s, "", ""
	}
	if len(s) < 3 || len(s) > 255 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
		return "", "cannot be the name of a table: want 3 to 255 letters, digits and _.-", "write weir"
	}
	return s, "", ""
})

var dynamoFields = []field[DynamoDB]{
	one("table", tableName, func(t *DynamoDB) *string { return &t.Table }, "required", "Table name."),
	one("region", word, func(t *DynamoDB) *string { return &t.Region }, "from the AWS SDK", "Region."),
	one("endpoint", word, func(t *DynamoDB) *string { return &t.Endpoint }, "the region's", ""),
}

func readDynamoDB(d *decoder, n *node, s *shelf) {
	if isOff(n) {
		return
	}
	var t DynamoDB
	if object(d, n, dynamoFields, &t); n.Kind != doc.Mapping {
		return
	}
	if n.Get("table") == nil {
		d.Bad(n, "", "has no table")
	}
	if u, err := url.Parse(t.Endpoint); t.Endpoint != "" && (err != nil || !strings.HasPrefix(u.Scheme, "http") || u.Host == "" || u.User != nil) {
		d.Bad(n.Get("endpoint"), "write it as http://localhost:8000", "is not the URL of a server")
	}
	s.DynamoDB = &t
}
