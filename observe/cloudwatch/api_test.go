package weircw

import (
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// A fake is the part of CloudWatch that an exporter uses. errs are the results of its calls in order. The last one repeats.
type fake struct {
	mu    sync.Mutex
	errs  []error
	calls []*cloudwatch.PutMetricDataInput
	tried []time.Time
	hang  bool
}

func (f *fake) PutMetricData(ctx context.Context, in *cloudwatch.PutMetricDataInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricDataOutput, error) {
	f.mu.Lock()
	f.tried = append(f.tried, time.Now())
	var err error
	if len(f.errs) > 0 {
		if err = f.errs[0]; len(f.errs) > 1 {
			f.errs = f.errs[1:]
		}
	}
	if err == nil && !f.hang {
		f.calls = append(f.calls, in)
	}
	hang := f.hang
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &cloudwatch.PutMetricDataOutput{}, err
}

// coded is an error of AWS.
type coded string

func (c coded) Error() string     { return string(c) }
func (c coded) ErrorCode() string { return string(c) }

func TestFailedCallsAreRepeatedOffThePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{errs: []error{coded("Throttling"), coded("InternalFailure"), errors.New("dial: refused"), nil}}
		m := start(t, Config{API: f})
		m.Events().Decided(weir.Decided{Subject: subject})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(f.tried) != 4 || len(f.calls) != 1 {
			t.Fatalf("%d attempts, %d taken, want 4 and 1", len(f.tried), len(f.calls))
		}
		for i, d := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if gap := f.tried[i+1].Sub(f.tried[i]); gap < d/2 || gap > d {
				t.Errorf("wait %d was %v, want %v to %v", i+1, gap, d/2, d)
			}
		}
		if s := m.Stats(); s.Published != 6 || s.Failures != 3 || s.Dropped != 0 || s.Waiting != 0 {
			t.Errorf("%+v, want 6 published after 3 failures", s)
		}
	})
}

func TestBacklogIsBoundedWhileCloudWatchIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{errs: []error{coded("ServiceUnavailable")}}
		m := start(t, Config{API: f, Backlog: 5})
		time.Sleep(time.Second)
		for range 60 {
			m.Events().Decided(weir.Decided{Subject: subject})
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if s := m.Stats(); s.Waiting != 5*6 || s.Dropped != 55*6 {
			t.Errorf("%+v, want 5 intervals waiting, 55 dropped", s)
		}
		if len(f.tried) > 130 {
			t.Errorf("%d attempts in an hour, want about one or two a minute", len(f.tried))
		}
		f.mu.Lock()
		f.errs = nil
		f.mu.Unlock()
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := m.Stats(); s.Published != 5*6 || s.Published+s.Dropped != 60*6 {
			t.Errorf("%+v, want the 5 intervals published that waited", s)
		}
	})
}

func TestWhatCloudWatchNeverTakesIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{errs: []error{coded("InvalidParameterValue"), nil}}
		m := start(t, Config{API: f})
		time.Sleep(time.Second)
		for range 2 {
			m.Events().Decided(weir.Decided{Subject: subject})
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if s := m.Stats(); s.Dropped != 6 || s.Published != 6 || len(f.tried) != 2 {
			t.Errorf("%+v after %d attempts, want 6 dropped and 6 published", s, len(f.tried))
		}
	})
}

func TestCloseGivesUpAtItsDeadlineOrAfterThreeAttempts(t *testing.T) {
	for _, tt := range []struct {
		f    *fake
		most time.Duration
	}{
		{&fake{hang: true}, time.Second},
		{&fake{errs: []error{coded("Throttling")}}, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := start(t, Config{API: tt.f})
			m.Events().Decided(weir.Decided{Subject: subject})
			time.Sleep(5 * time.Minute) // the backoff is long by now
			ctx, cancel := context.WithTimeout(t.Context(), tt.most)
			defer cancel()
			began := time.Now()
			err := m.Close(ctx)
			if err == nil || !strings.Contains(err.Error(), "6 data points were dropped") {
				t.Errorf("close says %v, want 6 dropped", err)
			}
			if took := time.Since(began); took > tt.most {
				t.Errorf("close took %v", took)
			}
			synctest.Wait()
			if s := m.Stats(); s.Dropped != 6 || s.Waiting != 0 {
				t.Errorf("%+v, want 6 dropped", s)
			}
		})
	}
}

func TestFlushDoesNotWaitForTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{errs: []error{coded("Throttling")}}
		m := start(t, Config{API: f})
		m.Events().Decided(weir.Decided{Subject: subject})
		time.Sleep(10*time.Minute + 7*time.Second)
		f.mu.Lock()
		f.errs = nil
		f.mu.Unlock()
		began := time.Now()
		if err := m.Flush(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v, want a flush at once", err, time.Since(began))
		}
	})
}

func TestAnAPIThatPanicsEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, Config{API: panics{}})
		m.Events().Decided(weir.Decided{Subject: subject})
		if err := m.Close(t.Context()); err != nil {
			t.Log(err)
		}
		if s := m.Stats(); s.Dropped != 6 {
			t.Errorf("%+v, want 6 dropped", s)
		}
	})
}

type panics struct{}

func (panics) PutMetricData(context.Context, *cloudwatch.PutMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricDataOutput, error) {
	panic("no")
}

// A receiver is a CloudWatch server for the SDK's real requests.
type receiver struct {
	t     *testing.T
	mu    sync.Mutex
	sums  map[string]float64 // sums of values times counts; for latencies, of counts
	calls int
	zip   int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || len(body) > 1<<20 {
		r.t.Errorf("body of %d bytes: %v", len(body), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if strings.Contains(req.Header.Get("Content-Encoding"), "gzip") {
		r.zip++
		z, err := gzip.NewReader(strings.NewReader(string(body)))
		if err != nil {
			r.t.Error(err)
			return
		}
		if body, err = io.ReadAll(z); err != nil || len(body) > 1<<20 {
			r.t.Errorf("body of %d bytes unpacked: %v", len(body), err)
		}
	}
	r.read(body)
	w.Header().Set("smithy-protocol", "rpc-v2-cbor")
	w.Header().Set("Content-Type", "application/cbor")
	_, _ = w.Write([]byte{0xa0}) // an empty map
}

func (r *receiver) read(body []byte) {
	v, rest := cbor(body)
	in, ok := v.(map[string]any)
	if !ok || len(rest) > 0 || in["Namespace"] != "Weir" {
		r.t.Errorf("call is %v, %d bytes too many", v, len(rest))
		return
	}
	data := in["MetricData"].([]any)
	if len(data) == 0 || len(data) > 1000 {
		r.t.Errorf("%d metrics in a call", len(data))
	}
	for _, d := range data {
		d := d.(map[string]any)
		id := d["MetricName"].(string)
		dimensions, _ := d["Dimensions"].([]any)
		for _, p := range dimensions {
			p := p.(map[string]any)
			id += " " + p["Name"].(string) + "=" + p["Value"].(string)
		}
		if n, ok := d["Value"]; ok {
			r.sums[id] += number(n)
			continue
		}
		values, counts := d["Values"].([]any), d["Counts"].([]any)
		if len(values) != len(counts) || len(values) > 150 || d["Unit"] != "Milliseconds" {
			r.t.Errorf("%d values, %d counts of %v", len(values), len(counts), d["Unit"])
		}
		for _, n := range counts {
			r.sums[id] += number(n)
		}
	}
}

func number(v any) float64 {
	if n, ok := v.(float64); ok {
		return n
	}
	return float64(v.(uint64))
}

// cbor decodes the part of RFC 8949 that the SDK encodes.
func cbor(b []byte) (v any, rest []byte) {
	major, info := b[0]>>5, b[0]&31
	b = b[1:]
	n := uint64(info)
	switch info {
	case 24:
		n, b = uint64(b[0]), b[1:]
	case 25:
		n, b = uint64(binary.BigEndian.Uint16(b)), b[2:]
	case 26:
		n, b = uint64(binary.BigEndian.Uint32(b)), b[4:]
	case 27:
		n, b = binary.BigEndian.Uint64(b), b[8:]
	}
	switch major {
	case 2, 3:
		return string(b[:n]), b[n:]
	case 4:
		var all []any
		for info == 31 && b[0] != 0xff || info != 31 && n > 0 {
			v, b = cbor(b)
			all, n = append(all, v), n-1
		}
		return all, ended(b, info)
	case 5:
		all := make(map[string]any)
		for info == 31 && b[0] != 0xff || info != 31 && n > 0 {
			var k any
			k, b = cbor(b)
			v, b = cbor(b)
			all[k.(string)], n = v, n-1
		}
		return all, ended(b, info)
	case 6:
		return cbor(b)
	case 7:
		switch info {
		case 26:
			return float64(math.Float32frombits(uint32(n))), b
		case 27:
			return math.Float64frombits(n), b
		}
	}
	return n, b
}

// ended returns the bytes after an array or a map, without its end mark if it has one.
func ended(b []byte, info byte) []byte {
	if info == 31 {
		return b[1:]
	}
	return b
}

func TestPutMetricDataThroughTheSDK(t *testing.T) {
	r := &receiver{t: t, sums: make(map[string]float64)}
	server := httptest.NewServer(r)
	defer server.Close()
	touched := 0
	config := aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
		HTTPClient: &http.Client{Transport: &httpx.Transport{Call: func(*http.Request) weir.Call { touched++; return weir.Call{} }}},
	}
	config.APIOptions = append(config.APIOptions, nil) // would panic if it was called
	m := start(t, Config{API: Client(config), Series: 5000})
	e := m.Events()
	const operations, each = 1200, 50
	for i := range operations {
		s := weir.Subject{Upstream: "s3", Operation: fmt.Sprint(strings.Repeat("operation-", 8), i)}
		for j := range each {
			e.Decided(weir.Decided{Subject: s, Waited: time.Duration(i*j) * time.Millisecond})
		}
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, r.sums, map[string]float64{
		"RateLimiterAcquisitions": operations * each, "RateLimiterAcquisitions Upstream=s3": operations * each,
		"RateLimiterAcquisitionWait": operations * each,
	})
	if s := m.Stats(); s.Published != 2*(operations+2) || s.Failures != 0 {
		t.Errorf("%+v, want %d points published", s, 2*(operations+2))
	}
	if r.calls < 3 || r.zip != r.calls || touched != 0 {
		t.Errorf("%d calls, %d of them compressed, %d through weir, want 3 or more, all, none", r.calls, r.zip, touched)
	}
}

// Temporary and permanent errors of the server, as the SDK returns them.
func TestErrorsOfTheSDKAreTold(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
		lasts  bool
	}{
		{400, "InvalidParameterValueException", true},
		{400, "ThrottlingException", false},
		{403, "AccessDeniedException", false},
		{500, "InternalServiceFault", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("smithy-protocol", "rpc-v2-cbor")
			w.Header().Set("Content-Type", "application/cbor")
			w.WriteHeader(tt.status)
			body := append([]byte{0xa1, 0x66}, "__type"...)
			body = append(body, 0x78, byte(len(tt.code)))
			_, _ = w.Write(append(body, tt.code...))
		}))
		c := Client(aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{}})
		_, err := c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("Weir")})
		if err == nil || permanent(err) != tt.lasts {
			t.Errorf("%s: permanent is %v, want %v: %v", tt.code, permanent(err), tt.lasts, err)
		}
		server.Close()
	}
}
