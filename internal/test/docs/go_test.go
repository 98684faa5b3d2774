package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	module = "github.com/seed1158cd35/weir"
)

// others are packages in samples that are not weir's or have another name.
var others = map[string]string{
	"aws": "github.com/aws/aws-sdk-go-v2/aws", "awsconfig": "github.com/aws/aws-sdk-go-v2/config", "awsdrs": "github.com/aws/aws-sdk-go-v2/service/drs", "s3": "github.com/aws/aws-sdk-go-v2/service/s3",
	"context": "context", "errors": "errors", "http": "net/http", "os": "os", "slog": "log/slog", "time": "time",
	"synctest": "testing/synctest", "testing": "testing",
	"lambda": "github.com/aws/aws-lambda-go/lambda", "dynamodb": "github.com/aws/aws-sdk-go-v2/service/dynamodb", "ddbtypes": "github.com/aws/aws-sdk-go-v2/service/dynamodb/types", "sqs": "github.com/aws/aws-sdk-go-v2/service/sqs",
	"awslambda": "github.com/aws/aws-sdk-go-v2/service/lambda", "grpc": "google.golang.org/grpc", "prometheus": "github.com/prometheus/client_golang/prometheus",
	"weircw": module + "/observe/cloudwatch", "weirprom": module + "/observe/prometheus",
}

// always has declarations that all samples assume, in addition to the declarations for the sample's file.
const always = `
var (
	ctx            context.Context
	err            error
	policy         weir.Policy
	cfg, awsConfig aws.Config
	store          fleet.Store
)
`

var given = map[string]string{
	"README.md":                    "type User struct{}\nvar client interface{ User(context.Context, int) (*User, error) }\nvar id int\n",
	"docs/tutorials/go-library.md": "type User struct{}\nvar client interface{ User(context.Context, int) (*User, error) }\nvar id int\nvar api *weir.Upstream\n",
	"docs/migrate/x-time-rate-gobreaker-backoff.md": "type User struct{}\nvar client interface{ User(context.Context, int) (*User, error) }\nvar id int\n",
	"docs/migrate/failsafe-go.md":                   "type User struct{}\nvar client interface{ User(context.Context, int) (*User, error) }\nvar id int\n",
	"doc.go":                                        "type Output struct{}\nvar client interface{ Put(context.Context, int) (*Output, error) }\nvar in int\n",
	"run.go":                                        "var u *weir.Upstream\nvar call weir.Call\nvar send func(context.Context) error\n",
	"httpx/doc.go":                                  "var api *weir.Upstream\n",
	"docs/how-to/notify.md":                         "var url, secret, token, secretTopic notify.Secret\n",
	"docs/how-to/run-on-lambda.md":                  "var ntfy *weir.Upstream\nvar publish func(context.Context, *lambdax.Message) error\nvar tables *dynamodb.Client\nvar queues *sqs.Client\nvar functions *awslambda.Client\nvar deadURL, queueURL string\nvar send func(context.Context, string, string) error\n",
	"awsx/lambdax/doc.go":                           "var ntfy *weir.Upstream\nvar publish func(context.Context, *lambdax.Message) error\nvar records *lambdax.DynamoRecords\nvar letters *lambdax.SQSLetters\n",
	"observe/notify/notify.go":                      "var url, secret notify.Secret\n",
	"awsx/drs/drs.go":                               "var in *awsdrs.StartRecoveryInput\n",
	"fleet/jobs/jobs.go":                            "var listed func(context.Context) ([]string, error)\n",
	"fleet/redisstore/doc.go":                       "var password string\n",
	"cascade/cache/cache.go":                        "var c *cache.Cache\nvar key cache.Key\nvar now time.Time\nfunc ask(context.Context) (cache.Entry, error) { panic(0) }\n",
	"grpcx/doc.go":                                  "var upstream *weir.Upstream\nvar address string\n",
	"observe/prometheus/metrics.go":                 "var registry *prometheus.Registry\n",
	"retry/purse.go":                                "var purse retry.Purse\nvar o *outcome.Outcome\nvar now time.Duration\n",
}

// A compiler checks samples with the compiled packages that they import.
type compiler struct {
	fset     *token.FileSet
	packages map[string]string // by the name in samples
	importer types.Importer
}

func newCompiler(t *testing.T) *compiler {
	c := &compiler{fset: token.NewFileSet(), packages: make(map[string]string)}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Name}} {{.Export}}", "./..."}
	for _, p := range others {
		args = append(args, p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	listed, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, &wrong)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(listed)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		exports[f[0]] = f[2]
		if strings.HasPrefix(f[0], module) && !strings.Contains(f[0], "/internal/") && f[1] != "main" {
			c.packages[f[1]] = f[0]
		}
	}
	for name, p := range others {
		c.packages[name] = p
	}
	c.importer = importer.ForCompiler(c.fset, "gc", func(p string) (io.ReadCloser, error) { return os.Open(exports[p]) })
	return c
}

// imports returns the packages that a file uses and does not import.
func (c *compiler) imports(f *ast.File) (all []string) {
	known := make(map[string]bool)
	for _, i := range f.Imports {
		known[path.Base(strings.Trim(i.Path.Value, `"`))] = true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && !known[id.Name] && c.packages[id.Name] != "" {
				known[id.Name] = true
				all = append(all, fmt.Sprintf("%s %q", id.Name, c.packages[id.Name]))
			}
		}
		return true
	})
	return all
}

func (c *compiler) check(s *Sample) error {
	declared := always + given[s.File]
	first, err := parser.ParseFile(c.fset, "", s.Program("p", nil, declared), 0)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(c.fset, s.File, s.Program("p", c.imports(first), declared), 0)
	if err != nil {
		return err
	}
	var wrong []string
	conf := types.Config{Importer: c.importer, Error: func(err error) {
		said := err.(types.Error).Msg
		if !strings.HasPrefix(said, "declared and not used") {
			wrong = append(wrong, said)
		}
	}}
	_, _ = conf.Check("p", c.fset, []*ast.File{file}, nil) // conf.Error receives the errors
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}

func TestProgramsInPagesCompile(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	c := newCompiler(t)
	var dirs []string
	for _, p := range c.packages {
		if rest, ok := strings.CutPrefix(p, module); ok {
			dirs = append(dirs, strings.TrimPrefix(rest, "/"))
		}
	}
	slices.Sort(dirs)
	for _, d := range slices.Compact(dirs) {
		in, err := Comments(root, d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, in...)
	}
	n := 0
	for _, s := range all {
		if s.Kind != "go" {
			continue
		}
		n++
		if err := c.check(&s); err != nil {
			t.Errorf("%s:%d: %v", s.File, s.Line, err)
		}
	}
	if n < 15 {
		t.Errorf("only %d programs were found", n)
	}
	t.Logf("%d programs compile", n)
}
