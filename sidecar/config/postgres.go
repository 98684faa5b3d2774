package config

import (
	"net/url"

	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/internal/doc"
)

// Postgres is a PostgreSQL database.
type Postgres struct {
	URL         string // without a password
	PasswordEnv string // environment variable with the password; "" means no password
	Connections int    // maximum
	Pooler      bool   // a pooler assigns each transaction its connection
}

var postgresFields = []field[Postgres]{
	{"url", "a URL", "required", "`postgres://user@host:5432/database`; `?sslmode=verify-full` for TLS, several hosts as in libpq. Set the password in `password_env`.", readPostgresURL},
	one("password_env", word, func(p *Postgres) *string { return &p.PasswordEnv }, "none", "Environment variable with the password."),
	one("connections", count[int](1), func(p *Postgres) *int { return &p.Connections }, "8", ""),
	one("pooler", boolean, func(p *Postgres) *bool { return &p.Pooler }, "false", "Set it behind a transaction pooler such as pgbouncer."),
}

func readPostgres(d *decoder, n *node, v *Deliveries) {
	if isOff(n) {
		return
	}
	p := Postgres{Connections: 8}
	if object(d, n, postgresFields, &p); n.Kind != doc.Mapping {
		return
	}
	if n.Get("url") == nil {
		d.Bad(n, "write url: postgres://weir@localhost:5432/weir", "has no url")
	}
	v.Postgres = &p
}

func readPostgresURL(d *decoder, n *node, p *Postgres) {
	text, ok := d.Str(n, "a URL")
	if !ok {
		return
	}
	const like = "write it as postgres://weir@host:5432/database"
	u, err := url.Parse(text)
	if err != nil {
		d.Bad(n, like, "is not a URL")
		return
	}
	_, secret := u.User.Password()
	q := u.Query()
	switch {
	case secret || q.Has("password") || q.Has("sslpassword"):
		d.Bad(n, "name the environment variable that holds it in password_env", "must not contain a password")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		d.Bad(n, like, "must begin with postgres://")
	case u.Host == "" && !q.Has("host"):
		d.Bad(n, like, "has no host")
	default:
		if err := postgres.CheckURL(text); err != nil {
			d.Bad(n, like, "%v", err)
		}
		p.URL = text
	}
}
