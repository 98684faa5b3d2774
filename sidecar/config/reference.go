package config

// A table of the reference is made from one table in the code.
type table struct {
	variable, title string
	rows            []row
}

type row struct{ name, words, missing, meaning string }

// documented reports whether a file may have the field.
func (r row) documented() bool { return r.meaning != "" }

func rows[T any](fields []field[T]) (all []row) {
	for _, f := range fields {
		all = append(all, row{f.name, f.words, f.missing, f.meaning})
	}
	return all
}

var sections = []table{
	{"documentFields", "The file", rows(documentFields)},
	{"tlsFields", "`tls`", rows(tlsFields)},
	{"boundFields", "`bounds`", rows(boundFields)},
	{"storeFields", "`store`", rows(storeFields)},
	{"dynamoFields", "`store.dynamodb`", rows(dynamoFields)},
	{"deliveriesFields", "`deliveries`", rows(deliveriesFields)},
	{"postgresFields", "`deliveries.postgres`", rows(postgresFields)},
	{"awsDeliveriesFields", "`deliveries.aws`", rows(awsDeliveriesFields)},
	{"callbackFields", "`deliveries.callbacks.NAME`", rows(callbackFields)},
	{"requestsFields", "`deliveries.requests`", rows(requestsFields)},
	{"decideFields", "`decide`", rows(decideFields)},
	{"tokenFields", "`tokens.NAME`", rows(tokenFields)},
	{"jwtFields", "`jwt`", rows(jwtFields)},
	{"askerFields", "`decide.tokens.NAME`", rows(askerFields)},
	{"adminTokenFields", "`admin_tokens.NAME`", rows(adminTokenFields)},
	{"cloudWatchFields", "`cloudwatch`", rows(cloudWatchFields)},
	{"notifyFields", "`notify`", rows(notifyFields)},
	{"tracesFields", "`traces`", rows(tracesFields)},
	{"metricsFields", "`metrics`", rows(metricsFields)},
	{"callersFields", "`callers`", rows(callersFields)},
	{"claimsFields", "`callers.claims`", rows(claimsFields)},
	{"upstreamFields", "`upstreams.NAME`", rows(upstreamFields)},
	{"routeFields", "`upstreams.NAME.routes[]`", rows(routeFields)},
	{"operationFields", "`upstreams.NAME.operations.NAME`", rows(operationFields)},
	{"limitFields", "`upstreams.NAME.limits.NAME`", rows(limitFields)},
	{"adaptiveFields", "`upstreams.NAME.limits.NAME.adaptive`", rows(adaptiveFields)},
	{"fairFields", "`upstreams.NAME.fair`", rows(fairFields)},
	{"retryFields", "`upstreams.NAME.retry`", rows(retryFields)},
	{"budgetFields", "`upstreams.NAME.budget`", rows(budgetFields)},
	{"quotaFields", "`upstreams.NAME.quota`", rows(quotaFields)},
	{"breakerFields", "`upstreams.NAME.breaker`", rows(breakerFields)},
	{"concurrencyFields", "`upstreams.NAME.concurrency`", rows(concurrencyFields)},
	{"timeoutFields", "`upstreams.NAME.timeouts`", rows(timeoutFields)},
	{"connectionFields", "`upstreams.NAME.connections`", rows(connectionFields)},
	{"llmFields", "`upstreams.NAME.llm`", rows(llmFields)},
	{"cacheFields", "`upstreams.NAME.llm.cache`", rows(cacheFields)},
	{"cascadeFields", "`upstreams.NAME.llm.cascade`", rows(cascadeFields)},
	{"maintenanceFields", "`upstreams.NAME.llm.cascade.maintenance`", rows(maintenanceFields)},
	{"tierFields", "`upstreams.NAME.llm.cascade.tiers[]`", rows(tierFields)},
	{"answersFields", "`upstreams.NAME.llm.cascade.tiers[].answers`", rows(answersFields)},
	{"socketFields", "`upstreams.NAME.websocket`", rows(socketFields)},
	{"jobsFields", "`upstreams.NAME.jobs`", rows(jobsFields)},
	{"awsFields", "`upstreams.NAME.aws`", rows(awsFields)},
	{"classifyFields", "`upstreams.NAME.classify`", rows(classifyFields)},
}
