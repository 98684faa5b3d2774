//go:build unix

package docs

import (
	"fmt"
	"go/parser"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

var awsKeys = []string{"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=SECRET", "AWS_SESSION_TOKEN=", "AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=eu-west-1"}

// samplesOf returns the samples of a page of one kind, in their order.
func samplesOf(t *testing.T, page, kind string) (found []Sample) {
	t.Helper()
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.File == page && s.Kind == kind {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", page, kind)
	}
	return found
}

// wantPaced wants that 40 calls took the 2 s that the pages state, and that none was throttled. printed is how many seconds they took.
func wantPaced(t *testing.T, far *drstest.Server, printed string) {
	t.Helper()
	last := printed[strings.LastIndex(strings.TrimSpace(printed), "\n")+1:]
	took, err := strconv.ParseFloat(strings.TrimSpace(last), 64)
	if err != nil || took < 1.9 || far.Requests("DescribeJobs") < 40 || far.Throttled() > 0 {
		t.Errorf("40 calls took %q s, %d requests, %d throttled; want 2 s, 40 and none", last, far.Requests("DescribeJobs"), far.Throttled())
	}
}

// The client of the page for Python calls DRS through a weir with the page's file.
func TestDRSFromPythonWorksAsItsPageShows(t *testing.T) {
	const page = "docs/how-to/use-drs-from-a-python-lambda.md"
	far := drstest.AWS()
	far.Burst += 2 // requests may arrive closer together than they were sent
	s := httptest.NewServer(far)
	defer s.Close()
	yaml := strings.NewReplacer("0.0.0.0:8080", "127.0.0.1:0", "https://drs.eu-west-1.amazonaws.com", s.URL).Replace(samplesOf(t, page, "yaml")[0].Text)
	w := served.Start(t, yaml+"admin: 127.0.0.1:0\n", awsKeys...)
	program := strings.ReplaceAll(samplesOf(t, page, "python")[0].Text, "weir.internal:8080", w.Serve.Listen) + `
import time
from concurrent.futures import ThreadPoolExecutor
began = time.time()
with ThreadPoolExecutor(40) as threads:
    list(threads.map(lambda _: drs.describe_jobs(), range(40)))
print(time.time() - began)
`
	file := filepath.Join(t.TempDir(), "call.py")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "python3", "-W", "ignore", file)
	c.Env = append(os.Environ(), awsKeys...)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, w.Log())
	}
	wantPaced(t, far, string(out))
	if list, code := served.Say(t, nil, "status", "--admin", w.Serve.Admin); code != 0 || !strings.Contains(list, "drs") {
		t.Errorf("weir status: %s", list)
	}
}

// The lines of the page for Go, in one program, call DRS at the limit that the page states and publish the metrics.
func TestDRSFromGoWorksAsItsPageShows(t *testing.T) {
	far := drstest.AWS()
	far.Burst += 2 // requests may arrive closer together than they were sent
	s := httptest.NewServer(far)
	defer s.Close()
	samples := samplesOf(t, "docs/how-to/use-drs-from-go.md", "go")
	out := runGo(t, samples[0].Text+"_ = list\nif err != nil { panic(err) }\n{\n"+samples[1].Text+`
		if err != nil { panic(err) }
		began := time.Now()
		var wg sync.WaitGroup
		for range 39 { // the first has been made
			wg.Go(func() {
				if _, err := client.DescribeJobs(ctx, &awsdrs.DescribeJobsInput{}); err != nil { panic(err) }
			})
		}
		wg.Wait()
		if err := metrics.Close(ctx); err != nil { panic(err) }
		fmt.Println()
		fmt.Println(time.Since(began).Seconds())
	}`, append(awsKeys, "AWS_ENDPOINT_URL_DRS="+s.URL)...)
	wantPaced(t, far, out)
	if !strings.Contains(out, `"APICallCount":39`) || !strings.Contains(out, `"Dimensions":[["Region","Operation","Success"]]`) {
		t.Errorf("the metrics of the design are not in\n%s", out)
	}
}

// The lines of the page for DynamoDB write to a table that throttles. All writes succeed, and the log has what the page states.
func TestDynamoDBFromGoWorksAsItsPageShows(t *testing.T) {
	far, err := url.Parse(servers.Dynalite(t).Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(far)
	var written, throttled atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
			if written.Load() > 10 && throttled.Load() < 40 {
				throttled.Add(1)
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`)
				return
			}
			written.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	defer s.Close()
	samples := samplesOf(t, "docs/how-to/use-dynamodb-from-go.md", "go")
	silent, lines, _ := strings.Cut(samples[0].Text, "\n")
	logged, see, _ := strings.Cut(samples[1].Text, "\n")
	if !strings.HasPrefix(silent, "guard := ") || !strings.HasPrefix(logged, "guard := ") {
		t.Fatalf("the samples begin with %q and %q; want a guard in both", silent, logged)
	}
	out := runGo(t, `
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stdout, nil)))
		cfg, err := awsconfig.LoadDefaultConfig(ctx)
		if err != nil { panic(err) }
		`+logged+"\n"+lines+`
		name, id := aws.String("orders"), aws.String("id")
		if _, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: name, BillingMode: ddbtypes.BillingModePayPerRequest,
			AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: id, AttributeType: ddbtypes.ScalarAttributeTypeS}},
			KeySchema: []ddbtypes.KeySchemaElement{{AttributeName: id, KeyType: ddbtypes.KeyTypeHash}},
		}); err != nil { panic(err) }
		if err := dynamodb.NewTableExistsWaiter(client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: name}, time.Minute); err != nil { panic(err) }
		var wg sync.WaitGroup
		for n := range 100 {
			wg.Go(func() {
				item := map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: fmt.Sprint(n)}}
				if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: item}); err != nil { panic(err) }
			})
		}
		wg.Wait()
		`+see, append(awsKeys, "AWS_ENDPOINT_URL_DYNAMODB="+s.URL)...)
	if written.Load() != 100 || throttled.Load() != 40 {
		t.Errorf("%d writes succeeded, %d were throttled; want 100 and 40", written.Load(), throttled.Load())
	}
	for _, want := range []string{"msg=throttled ", `msg="rate cut" `, "limit=writes key=orders ", "msg=limits of=aws/dynamodb/eu-west-1/"} {
		if !strings.Contains(out, want) {
			t.Errorf("the log has no %s:\n%s", want, out)
		}
	}
}

// runGo runs statements with ctx, and returns what they print.
func runGo(t *testing.T, text string, env ...string) string {
	t.Helper()
	c := newCompiler(t)
	body := "\nfunc main() {\nctx := context.Background()\n" + text + "\n}\n"
	first, err := parser.ParseFile(c.fset, "", "package main\n"+body, 0)
	if err != nil {
		t.Fatal(err)
	}
	imports := strings.Join(append(c.imports(first), `"sync"`, `"fmt"`), "\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, fmt.Appendf(nil, "package main\nimport (\n%s\n)\n%s", imports, body), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", file)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &errs, out)
	}
	return string(out)
}
