// Lists the routes of openapi.json.
(async () => {
  const told = await (await fetch("/openapi.json")).json();
  for (const [path, methods] of Object.entries(told.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const answers = Object.entries(route.responses).map(([code, { description }]) => `${code}: ${description}`);
      const takes = Object.keys(route.requestBody?.content ?? {}).join(", ");
      $("routes").append(make("article", { className: "route" },
        make("h2", {}, `${method.toUpperCase()} ${path}`), make("p", {}, route.summary),
        make("p", { className: "hint" }, [takes && `body: ${takes}`, ...answers].filter(Boolean).join(" · "))));
    }
  }
})();
