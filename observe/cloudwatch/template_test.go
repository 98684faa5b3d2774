package weircw

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/observe/rules"
)

// A shape describes a valid property. The resource schemas are CloudFormation's for AWS::CloudWatch::Alarm, AWS::SNS::Topic and
// AWS::SNS::Subscription (read 2026-09), without read-only properties.
type shape struct {
	is     string // string, number, integer, boolean, list or object
	oneOf  []string
	of     *shape           // of a list's elements
	fields map[string]shape // of an object
	needs  []string
	most   int // of a list
}

var (
	str, num, whole, flag = shape{is: "string"}, shape{is: "number"}, shape{is: "integer"}, shape{is: "boolean"}

	free       = shape{is: "object"}
	actions    = shape{is: "list", of: &str, most: 5}
	dimension  = shape{is: "object", fields: map[string]shape{"Name": str, "Value": str}, needs: []string{"Name", "Value"}}
	tag        = shape{is: "object", fields: map[string]shape{"Key": str, "Value": str}, needs: []string{"Key", "Value"}}
	subscriber = shape{is: "object", fields: map[string]shape{"Endpoint": str, "Protocol": str}, needs: []string{"Endpoint", "Protocol"}}
)

// The body of a dashboard is checked separately.
var (
	body = shape{is: "string"}
)

// A query of metric math, and its metric.
var (
	metricOf = shape{is: "object", needs: []string{"Namespace", "MetricName"}, fields: map[string]shape{"Namespace": str, "MetricName": str, "Dimensions": {is: "list", of: &dimension, most: 30}}}
	statOf   = shape{is: "object", needs: []string{"Metric", "Period", "Stat"}, fields: map[string]shape{"Metric": metricOf, "Period": whole, "Stat": str, "Unit": {is: "string", oneOf: units}}}
	query    = shape{is: "object", needs: []string{"Id"}, fields: map[string]shape{"Id": str, "Expression": str, "Label": str, "Period": whole, "ReturnData": flag, "MetricStat": statOf, "AccountId": str}}
)

var schemas = map[string]shape{
	"AWS::CloudWatch::CompositeAlarm": {
		is: "object", needs: []string{"AlarmRule"},
		fields: map[string]shape{
			"ActionsEnabled": flag, "ActionsSuppressor": str, "ActionsSuppressorExtensionPeriod": whole, "ActionsSuppressorWaitPeriod": whole,
			"AlarmActions": actions, "AlarmDescription": str, "AlarmName": str, "AlarmRule": str, "InsufficientDataActions": actions, "OKActions": actions, "Tags": {is: "list", of: &tag, most: 50},
		},
	},
	"AWS::CloudWatch::Alarm": {
		is: "object", needs: []string{"ComparisonOperator", "EvaluationPeriods"},
		fields: map[string]shape{
			"ActionsEnabled": flag, "AlarmActions": actions, "AlarmDescription": str, "AlarmName": str,
			"ComparisonOperator": {is: "string", oneOf: strings.Fields(`GreaterThanOrEqualToThreshold GreaterThanThreshold LessThanThreshold
				LessThanOrEqualToThreshold LessThanLowerOrGreaterThanUpperThreshold LessThanLowerThreshold GreaterThanUpperThreshold`)},
			"DatapointsToAlarm": whole, "Dimensions": {is: "list", of: &dimension, most: 30},
			"EvaluateLowSampleCountPercentile": {is: "string", oneOf: []string{"evaluate", "ignore"}},
			"EvaluationPeriods":                whole, "ExtendedStatistic": str, "InsufficientDataActions": actions,
			"Metrics":    {is: "list", of: &query, most: 20},
			"MetricName": str, "Namespace": str, "OKActions": actions, "Period": whole,
			"Statistic": {is: "string", oneOf: strings.Fields("SampleCount Average Sum Minimum Maximum")},
			"Tags":      {is: "list", of: &tag, most: 50}, "Threshold": num,
			"TreatMissingData":  {is: "string", oneOf: strings.Fields("breaching ignore missing notBreaching")},
			"ThresholdMetricId": str, "Unit": {is: "string", oneOf: units},
		},
	},
	"AWS::CloudWatch::Dashboard": {
		is: "object", needs: []string{"DashboardBody"}, fields: map[string]shape{"DashboardBody": body, "DashboardName": str, "Tags": {is: "list", of: &tag}},
	},
	"AWS::Logs::QueryDefinition": {
		is: "object", needs: []string{"Name", "QueryString"},
		fields: map[string]shape{"LogGroupNames": {is: "list", of: &str}, "Name": str, "QueryLanguage": str, "QueryString": str},
	},
	"AWS::SNS::Topic": {
		is: "object",
		fields: map[string]shape{
			"ArchivePolicy": free, "ContentBasedDeduplication": flag, "DataProtectionPolicy": free, "DisplayName": str,
			"FifoTopic": flag, "KmsMasterKeyId": str, "SignatureVersion": str, "Subscription": {is: "list", of: &subscriber},
			"Tags": {is: "list", of: &tag}, "TopicName": str, "TracingConfig": str,
		},
	},
	"AWS::SNS::Subscription": {
		is: "object", needs: []string{"TopicArn", "Protocol"},
		fields: map[string]shape{
			"DeliveryPolicy": free, "Endpoint": str, "FilterPolicy": free, "FilterPolicyScope": str,
			"Protocol":           {is: "string", oneOf: strings.Fields("http https email email-json sms sqs application lambda firehose")},
			"RawMessageDelivery": flag, "RedrivePolicy": free, "Region": str, "SubscriptionRoleArn": str, "TopicArn": str,
		},
	},
}

// A template is checked together with everything that it can refer to.
type template struct {
	parameters map[string]any
	conditions map[string]any
	resources  map[string]any
	used       map[string]bool
	errs       []string
}

func (c *template) bad(where, format string, args ...any) {
	c.errs = append(c.errs, where+": "+fmt.Sprintf(format, args...))
}

// checkTemplate returns the errors that CloudFormation would report, where the rules are known here.
func checkTemplate(text string) []string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return []string{err.Error()}
	}
	root, ok := v.(map[string]any)
	if !ok {
		return []string{"not an object"}
	}
	part := func(name string) map[string]any { m, _ := root[name].(map[string]any); return m }
	c := &template{parameters: part("Parameters"), conditions: part("Conditions"), resources: part("Resources"), used: make(map[string]bool)}
	for name := range root {
		if !slices.Contains(strings.Fields("AWSTemplateFormatVersion Description Parameters Conditions Resources Outputs"), name) {
			c.bad(name, "no such section")
		}
	}
	if root["AWSTemplateFormatVersion"] != "2010-09-09" || len(c.resources) == 0 {
		c.bad("template", "want version 2010-09-09 and resources")
	}
	c.sections()
	for name, o := range part("Outputs") {
		c.object(name, o, shape{is: "object", fields: map[string]shape{"Description": str, "Value": str, "Condition": str, "Export": free}, needs: []string{"Value"}})
	}
	for name := range c.parameters {
		if !c.used[name] {
			c.bad(name, "is a parameter that nothing uses")
		}
	}
	slices.Sort(c.errs)
	return c.errs
}

func (c *template) sections() {
	for name, p := range c.parameters {
		c.object(name, p, shape{is: "object", needs: []string{"Type"}, fields: map[string]shape{
			"Type": {is: "string", oneOf: []string{"String", "Number"}}, "Default": {is: "scalar"}, "Description": str,
			"AllowedPattern": str, "MinValue": num, "MaxValue": num, "MinLength": whole, "MaxLength": whole,
		}})
	}
	for name, v := range c.conditions {
		c.condition(name, v)
	}
	for name, r := range c.resources {
		if !regexp.MustCompile(`^[A-Za-z0-9]{1,255}$`).MatchString(name) {
			c.bad(name, "letters and digits only")
		}
		m, _ := r.(map[string]any)
		kind, _ := m["Type"].(string)
		schema, ok := schemas[kind]
		if !ok {
			c.bad(name, "type %q has no schema here", kind)
			continue
		}
		if on, ok := m["Condition"].(string); ok && c.conditions[on] == nil {
			c.bad(name, "there is no condition %s", on)
		}
		for field := range m {
			if !slices.Contains([]string{"Type", "Properties", "Condition", "DependsOn", "DeletionPolicy"}, field) {
				c.bad(name, "no attribute %s", field)
			}
		}
		c.object(name, m["Properties"], schema)
		switch p, _ := m["Properties"].(map[string]any); {
		case kind != "AWS::CloudWatch::Alarm" || p == nil:
		case p["Metrics"] != nil:
			c.math(name, p)
		default:
			c.alarm(name, p)
		}
	}
}

// condition accepts Fn::Not, Fn::And, Fn::Or and Fn::Equals of values.
func (c *template) condition(where string, v any) {
	m, _ := v.(map[string]any)
	if len(m) != 1 {
		c.bad(where, "a condition has one function")
		return
	}
	for fn, args := range m {
		list, _ := args.([]any)
		n, ok := map[string]int{"Fn::Not": 1, "Fn::Equals": 2, "Fn::And": 0, "Fn::Or": 0}[fn]
		if !ok || n > 0 && len(list) != n || len(list) == 0 {
			c.bad(where, "%s of %d arguments", fn, len(list))
		}
		for _, a := range list {
			if fn == "Fn::Equals" {
				c.value(where, a, shape{is: "scalar"})
			} else {
				c.condition(where, a)
			}
		}
	}
}

func (c *template) object(where string, v any, s shape) {
	m, ok := v.(map[string]any)
	if !ok {
		c.bad(where, "want an object, got %v", v)
		return
	}
	for name, field := range m {
		f, ok := s.fields[name]
		if !ok && s.fields != nil {
			c.bad(where, "no property %s", name)
			continue
		}
		if ok {
			c.value(where+"."+name, field, f)
		}
	}
	for _, name := range s.needs {
		if m[name] == nil {
			c.bad(where, "%s is missing", name)
		}
	}
}

func (c *template) value(where string, v any, s shape) {
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		if name, ok := m["Ref"].(string); ok {
			c.ref(where, name, s)
			return
		}
		if text, ok := m["Fn::Sub"].(string); ok && s.is == "string" {
			if strings.HasSuffix(where, ".AlarmRule") {
				c.rule(where, text)
			}
			c.sub(where, text, nil)
			return
		}
		if args, ok := m["Fn::Sub"].([]any); ok && s.is == "string" && len(args) == 2 {
			text, _ := args[0].(string)
			put, _ := args[1].(map[string]any)
			for name, v := range put {
				c.value(where+"."+name, v, str)
			}
			c.sub(where, text, put)
			return
		}
		if args, ok := m["Fn::If"].([]any); ok {
			on, _ := args[0].(string)
			if len(args) != 3 || c.conditions[on] == nil {
				c.bad(where, "there is no condition %v", args[0])
				return
			}
			c.value(where, args[1], s)
			c.value(where, args[2], s)
			return
		}
	}
	c.literal(where, v, s)
}

func (c *template) literal(where string, v any, s shape) {
	_, text := v.(string)
	n, isNum := v.(float64)
	_, isFlag := v.(bool)
	list, isList := v.([]any)
	ok := map[string]bool{
		"string": text, "number": isNum, "integer": isNum && n == float64(int64(n)), "boolean": isFlag,
		"scalar": text || isNum, "list": isList, "object": true,
	}[s.is]
	if !ok {
		c.bad(where, "want a %s, got %v", s.is, v)
	}
	if s.oneOf != nil && !slices.Contains(s.oneOf, fmt.Sprint(v)) {
		c.bad(where, "%v is not one of %v", v, s.oneOf)
	}
	if s.is == "object" {
		c.object(where, v, s)
	}
	if s.most > 0 && len(list) > s.most {
		c.bad(where, "%d entries, at most %d", len(list), s.most)
	}
	for i, e := range list {
		c.value(fmt.Sprintf("%s[%d]", where, i), e, *s.of)
	}
}

func (c *template) ref(where, name string, s shape) {
	c.used[name] = true
	p, _ := c.parameters[name].(map[string]any)
	switch {
	case name == "AWS::NoValue":
	case p == nil && c.resources[name] == nil:
		c.bad(where, "there is no %s", name)
	case (s.is == "number" || s.is == "integer") && (p == nil || p["Type"] != "Number"):
		c.bad(where, "%s is no number", name)
	case s.is == "list" || s.is == "object":
		c.bad(where, "%s is no %s", name, s.is)
	}
}

// named matches a resource in the rule of a composite alarm. ruled matches the rest of such a rule.
var (
	named = regexp.MustCompile(`ALARM\("\$\{(\w+)\}"\)`)
	ruled = regexp.MustCompile(`^(A|NOT|AND|OR|[() ])+$`)
)

// placed matches what Fn::Sub replaces.
var placed = regexp.MustCompile(`\$\{([^}]*)\}`)

// sub checks a text in which every replaced name must be known.
func (c *template) sub(where, text string, put map[string]any) {
	for _, m := range placed.FindAllStringSubmatch(text, -1) {
		name, attribute, _ := strings.Cut(m[1], ".")
		c.used[name] = true
		if strings.HasPrefix(m[1], "AWS::") || put[m[1]] != nil || attribute == "" && c.parameters[name] != nil {
			continue
		}
		if r, _ := c.resources[name].(map[string]any); r == nil || attribute != "" && attribute != "Arn" || r["Condition"] != nil {
			c.bad(where, "there is no %s", m[1])
		}
	}
	for name := range put {
		if !strings.Contains(text, "${"+name+"}") {
			c.bad(where, "%s is put nowhere", name)
		}
	}
}

// rule checks the rule of a composite alarm, whose alarms must be in the template.
func (c *template) rule(where, text string) {
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		if r, _ := c.resources[m[1]].(map[string]any); r["Type"] != "AWS::CloudWatch::Alarm" {
			c.bad(where, "%s is no alarm", m[1])
		}
	}
	if rest := named.ReplaceAllString(text, "A"); !ruled.MatchString(rest) || strings.Count(rest, "(") != strings.Count(rest, ")") {
		c.bad(where, "%q is no rule", text)
	}
}

// math checks an alarm on an expression: its metrics exist, and exactly one query returns data.
func (c *template) math(name string, p map[string]any) {
	queries, _ := p["Metrics"].([]any)
	expression, returned, ids := "", 0, []string{}
	for _, q := range queries {
		q, _ := q.(map[string]any)
		id, _ := q["Id"].(string)
		if q["ReturnData"] != false {
			returned++
		}
		if e, ok := q["Expression"].(string); ok {
			expression = e
			continue
		}
		ids = append(ids, id)
		stat, _ := q["MetricStat"].(map[string]any)
		metric, _ := stat["Metric"].(map[string]any)
		m := Metric(fmt.Sprint(metric["MetricName"]))
		if !slices.Contains(Metrics[:], m) {
			c.bad(name, "there is no metric %q", m)
			continue
		}
		c.published(name, m, metric["Dimensions"])
	}
	wanted := 1
	if p["ThresholdMetricId"] != nil { // the band, and the values
		wanted = 2
		if band, _ := queries[0].(map[string]any); band["Id"] != p["ThresholdMetricId"] || !strings.HasPrefix(expression, "ANOMALY_DETECTION_BAND(") || p["Threshold"] != nil {
			c.bad(name, "%v is no band", p["ThresholdMetricId"])
		}
	}
	if returned != wanted || p["TreatMissingData"] != "notBreaching" || p["MetricName"] != nil || p["Period"] != nil || p["Statistic"] != nil {
		c.bad(name, "%d queries return data, missing data is %v", returned, p["TreatMissingData"])
	}
	for _, word := range regexp.MustCompile(`\b[a-z]\w*`).FindAllString(expression, -1) {
		if !slices.Contains(ids, word) {
			c.bad(name, "%s is no query", word)
		}
	}
}

// alarm checks rules for alarms that are in no schema, and that the metrics exist.
func (c *template) alarm(name string, p map[string]any) {
	metric, _ := p["MetricName"].(string)
	m := Metric(metric)
	if !slices.Contains(Metrics[:], m) {
		c.bad(name, "there is no metric %q", metric)
		return
	}
	if (p["Statistic"] == nil) == (p["ExtendedStatistic"] == nil) {
		c.bad(name, "want Statistic or ExtendedStatistic")
	}
	if p["Unit"] != m.Unit() {
		c.bad(name, "unit %v, %s is in %s", p["Unit"], m, m.Unit())
	}
	period, _ := p["Period"].(float64)
	n, _ := p["EvaluationPeriods"].(float64)
	if k, ok := p["DatapointsToAlarm"].(float64); ok && k > n || period < 60 || int(period)%60 != 0 || period*n > 86400 {
		c.bad(name, "%v of %v periods of %vs", p["DatapointsToAlarm"], n, period)
	}
	if d, _ := p["AlarmDescription"].(string); len(d) < 60 || len(d) > 1024 {
		c.bad(name, "a description of %d characters does not say what to do", len(d))
	}
	if p["TreatMissingData"] != "notBreaching" { // events that do not happen are not published
		c.bad(name, "missing data is %v, want notBreaching", p["TreatMissingData"])
	}
	c.published(name, m, p["Dimensions"])
}

// published reports an alarm on dimensions that the metric is not published with.
func (c *template) published(name string, m Metric, dimensions any) {
	var sets []Set
	for _, on := range []bool{false, true} {
		set := Set{}
		list, _ := dimensions.([]any)
		for _, d := range list {
			if d, ok := d.(map[string]any)["Fn::If"].([]any); ok && on {
				if n, ok := d[1].(map[string]any)["Name"].(string); ok { // the static dimension has a Ref
					set = append(set, Dimension(n))
				}
			}
		}
		sets = append(sets, set)
	}
	for _, set := range sets {
		if !slices.ContainsFunc(m.Sets(), set.same) {
			c.bad(name, "%s is not published with the dimensions %v", m, set)
		}
	}
}

func alarms(t *testing.T) string {
	t.Helper()
	return string(rules.CloudFormation(rules.Options{}))
}

func TestTemplateIsWhatCloudFormationTakes(t *testing.T) {
	for _, err := range append(checkTemplate(alarms(t)), runbooks(alarms(t))...) {
		t.Error(err)
	}
}

func TestTemplateHasTheAlarms(t *testing.T) {
	var v any
	if err := json.Unmarshal([]byte(alarms(t)), &v); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range v.(map[string]any)["Resources"].(map[string]any) {
		p := r.(map[string]any)["Properties"].(map[string]any)
		if name, ok := p["MetricName"].(string); ok {
			got = append(got, name)
			for _, list := range []string{"AlarmActions", "OKActions"} {
				part := p["ThresholdMetricId"] == nil && (name == string(APICallLatency) || name == string(ModelChainDown)) // a part of a composite alarm, which notifies instead
				if !part && fmt.Sprint(p[list]) != "[map[Ref:Topic]]" {
					t.Errorf("%s: %s are %v, want the topic", name, list, p[list])
				}
			}
		}
	}
	slices.Sort(got)
	want := []Metric{APICallLatency, CircuitBreakerState, ModelChainDown, AcquisitionFailures, AcquisitionLatency, AcquisitionWait, DeadLetters, FallbackActivated, RateLimitErrors, RetryExhausted, StoreThrottled, Violations}
	var names []string
	for _, m := range want {
		names = append(names, string(m))
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("alarms on %v, want %v", got, names)
	}
}

// The check must find mistakes, or it proves nothing.
func TestTemplatesWithMistakesAreFound(t *testing.T) {
	good := alarms(t)
	for old, next := range map[string]string{
		`"MetricName": "RetryExhausted"`:     `"MetricName": "RetriesExhausted"`,
		`"Statistic": "Maximum"`:             `"Statistic": "Max"`,
		`"Threshold": 1,`:                    `"Threshold": "one",`,
		`"Ref": "LatencyThreshold"`:          `"Ref": "Email"`,
		`"ExtendedStatistic": "p99"`:         `"ExtendedStatistic": "p99", "Statistic": "Sum"`,
		`"TreatMissingData": "notBreaching"`: `"TreatMissingData": "missing"`,
		`"MetricName": "ModelFallbacks"`:     `"MetricName": "ModelFallback"`,
		`FILL(b, 0) / a, 0)"`:                `FILL(c, 0) / a, 0)"`,
		`AND NOT ALARM(\"${NoModel}\")`:      `AND NOT ALARM(\"${Topic}\")`,
		`OR ALARM(\"${ErrorRate}\"))`:        `OR ALARM(\"${ErrorRate}\")`,
		`"Unit": "Milliseconds"`:             `"Unit": "Count"`,
		`"Ref": "Topic"`:                     `"Ref": "Topics"`,
		`"DisplayName"`:                      `"Display"`,
		`"Protocol": "email"`:                `"Protocol": "pigeon"`,
		`"Condition": "HasEmail"`:            `"Condition": "HasMail"`,
		`"HasStatic",`:                       `"HasStatics",`,
		`"Name": "Upstream"`:                 `"Name": "Operation"`,
		`"AWS::SNS::Topic"`:                  `"AWS::SNS::Topics"`,
		`"2010-09-09"`:                       `"2026-01-01"`,
		`"EvaluationPeriods": 1`:             `"EvaluationPeriods": 0.5`,
		`"Fn::Not"`:                          `"Fn::Nor"`,
		`"Resources"`:                        `"Resource"`,
		`"LatencyThreshold": {`:              `"LatencyThresholds": {`,
		`"ThresholdMetricId": "usual"`:       `"ThresholdMetricId": "a"`,
		`"QueryString"`:                      `"Query"`,
		`${ChainDown.Arn}`:                   `${ChainsDown.Arn}`,
		`"DashboardBody"`:                    `"Body"`,
		`${Static}`:                          `${Statics}`,
		`violation.md`:                       `violations.md`,
	} {
		if !strings.Contains(good, old) {
			t.Fatalf("the template has no %q", old)
		}
		if errs := append(checkTemplate(strings.Replace(good, old, next, 1)), runbooks(strings.Replace(good, old, next, 1))...); len(errs) == 0 {
			t.Errorf("%q in place of %q was not found", next, old)
		}
	}
}

// unitAndSets returns the text in parentheses that the document has for a metric: its unit if it is not Count, and its sets of
// dimensions in addition to the total and Upstream. "only" means that the metric has just the listed sets.
func unitAndSets(m Metric) string {
	var sets []string
	for _, s := range m.Sets() {
		names := []string{}
		for _, d := range s {
			names = append(names, "`"+string(d)+"`")
		}
		sets = append(sets, cmp.Or(strings.Join(names, " "), "total"))
	}
	if len(sets) >= 2 && sets[0] == "total" && sets[1] == "`Upstream`" {
		sets = sets[2:]
		for i := range sets {
			sets[i] = strings.TrimPrefix(sets[i], "`Upstream` ")
		}
	} else {
		sets[0] = "only " + sets[0]
	}
	if m.Unit() != "Count" {
		sets = append([]string{m.Unit()}, sets...)
	}
	if len(sets) == 0 {
		return ""
	}
	return " (" + strings.Join(sets, "; ") + ")"
}

func TestDocumentListsEveryMetricAndDimension(t *testing.T) {
	b, err := os.ReadFile("../../docs/how-to/use-cloudwatch.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^- `([A-Za-z]+)`(.*)$").FindAllStringSubmatch(string(b), -1) {
		rows[m[1]] = m[2]
	}
	for _, m := range Metrics {
		if want := unitAndSets(m) + ": "; !strings.HasPrefix(rows[string(m)], want) {
			t.Errorf("%s: docs/how-to/use-cloudwatch.md says %q, want it to begin with %q", m, rows[string(m)], want)
		}
		delete(rows, string(m))
	}
	for _, d := range Dimensions {
		if rows[string(d)] == "" {
			t.Errorf("docs/how-to/use-cloudwatch.md has no row for the dimension %s", d)
		}
		delete(rows, string(d))
	}
	for name := range maps.Keys(rows) {
		if _, ok := schemas[name]; !ok && name != "Namespace" {
			t.Errorf("docs/how-to/use-cloudwatch.md has a row for %s, which there is not", name)
		}
	}
}

// Composite alarms notify the topic. Their component alarms do not.
func TestTemplateHasTheCompositeAlarms(t *testing.T) {
	var v any
	if err := json.Unmarshal([]byte(alarms(t)), &v); err != nil {
		t.Fatal(err)
	}
	resources := v.(map[string]any)["Resources"].(map[string]any)
	for name, parts := range map[string][]string{"ModelUnhealthy": {"ErrorRate", "CallLatency"}, "ModelDegraded": {"FallbackShare", "NoModel"}, "ChainDown": {"NoModel", "FallbackShare", "ErrorRate"}} {
		r, _ := resources[name].(map[string]any)
		p, _ := r["Properties"].(map[string]any)
		rule, _ := p["AlarmRule"].(map[string]any)
		var has []string
		for _, m := range named.FindAllStringSubmatch(fmt.Sprint(rule["Fn::Sub"]), -1) {
			has = append(has, m[1])
			if of := resources[m[1]].(map[string]any)["Properties"].(map[string]any); of["AlarmActions"] != nil {
				t.Errorf("%s tells the topic by itself, too", m[1])
			}
		}
		if !slices.Equal(has, parts) || fmt.Sprint(p["AlarmActions"]) != "[map[Ref:Topic]]" {
			t.Errorf("%s is made of %v and tells %v, want %v and the topic", name, has, p["AlarmActions"], parts)
		}
	}
}
