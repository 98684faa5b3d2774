package wire

import (
	"net/http"
	"strings"
)

// A route is an operation of a service that uses paths. {} matches one segment.
type route struct{ method, path, name string }

// routes are from the API references of the services (November 2026). Services whose paths contain the operation need none.
var routes = map[string][]route{
	"lambda": {
		{http.MethodPost, "/2015-03-31/functions/{}/invocations", "Invoke"},
		{http.MethodPost, "/2021-11-15/functions/{}/response-streaming-invocations", "InvokeWithResponseStream"},
		{http.MethodPost, "/2014-11-13/functions/{}/invoke-async", "InvokeAsync"},
		{http.MethodGet, "/2015-03-31/functions", "ListFunctions"},
		{http.MethodPost, "/2015-03-31/functions", "CreateFunction"},
		{http.MethodGet, "/2015-03-31/functions/{}", "GetFunction"},
		{http.MethodDelete, "/2015-03-31/functions/{}", "DeleteFunction"},
		{http.MethodGet, "/2015-03-31/functions/{}/configuration", "GetFunctionConfiguration"},
		{http.MethodPut, "/2015-03-31/functions/{}/configuration", "UpdateFunctionConfiguration"},
		{http.MethodPut, "/2015-03-31/functions/{}/code", "UpdateFunctionCode"},
		{http.MethodPost, "/2015-03-31/functions/{}/versions", "PublishVersion"},
		{http.MethodGet, "/2015-03-31/functions/{}/versions", "ListVersionsByFunction"},
		{http.MethodGet, "/2015-03-31/functions/{}/aliases", "ListAliases"},
		{http.MethodPost, "/2015-03-31/functions/{}/aliases", "CreateAlias"},
		{http.MethodGet, "/2015-03-31/functions/{}/policy", "GetPolicy"},
		{http.MethodPost, "/2015-03-31/functions/{}/policy", "AddPermission"},
		{http.MethodGet, "/2015-03-31/event-source-mappings", "ListEventSourceMappings"},
		{http.MethodPost, "/2015-03-31/event-source-mappings", "CreateEventSourceMapping"},
		{http.MethodGet, "/2015-03-31/event-source-mappings/{}", "GetEventSourceMapping"},
		{http.MethodGet, "/2016-08-19/account-settings", "GetAccountSettings"},
	},
	"bedrock": {
		{http.MethodPost, "/model/{}/converse", "Converse"},
		{http.MethodPost, "/model/{}/converse-stream", "ConverseStream"},
		{http.MethodPost, "/model/{}/invoke", "InvokeModel"},
		{http.MethodPost, "/model/{}/invoke-with-response-stream", "InvokeModelWithResponseStream"},
		{http.MethodPost, "/model/{}/invoke-with-bidirectional-stream", "InvokeModelWithBidirectionalStream"},
		{http.MethodPost, "/model/{}/count-tokens", "CountTokens"},
		{http.MethodPost, "/guardrail/{}/version/{}/apply", "ApplyGuardrail"},
		{http.MethodPost, "/async-invoke", "StartAsyncInvoke"},
		{http.MethodGet, "/async-invoke", "ListAsyncInvokes"},
		{http.MethodGet, "/async-invoke/{}", "GetAsyncInvoke"},
		{http.MethodGet, "/foundation-models", "ListFoundationModels"},
		{http.MethodGet, "/foundation-models/{}", "GetFoundationModel"},
		{http.MethodGet, "/inference-profiles", "ListInferenceProfiles"},
	},
	"eks": {
		{http.MethodGet, "/clusters", "ListClusters"},
		{http.MethodPost, "/clusters", "CreateCluster"},
		{http.MethodGet, "/clusters/{}", "DescribeCluster"},
		{http.MethodDelete, "/clusters/{}", "DeleteCluster"},
	},
	"batch": {
		{http.MethodPost, "/v1/submitjob", "SubmitJob"},
		{http.MethodPost, "/v1/describejobs", "DescribeJobs"},
		{http.MethodPost, "/v1/listjobs", "ListJobs"},
		{http.MethodPost, "/v1/terminatejob", "TerminateJob"},
		{http.MethodPost, "/v1/canceljob", "CancelJob"},
	},
}

// match returns the operation of a raw path. For a service without routes whose path is one capitalized name, as for DRS, that
// name is the operation.
func match(service, method, path string) string {
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	for _, r := range routes[service] {
		if r.method == method && fits(r.path, path) {
			return r.name
		}
	}
	if name := strings.TrimPrefix(path, "/"); method == http.MethodPost && name != "" && name[0] >= 'A' && name[0] <= 'Z' {
		return name
	}
	return ""
}

func fits(template, path string) bool {
	for template != "" {
		i := strings.Index(template, "{}")
		if i < 0 {
			return template == path
		}
		if !strings.HasPrefix(path, template[:i]) {
			return false
		}
		path, template = path[i:], template[i+2:]
		n := strings.IndexByte(path, '/')
		if n < 0 {
			n = len(path)
		}
		if n == 0 {
			return false
		}
		path = path[n:]
	}
	return path == ""
}
