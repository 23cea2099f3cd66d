"""A small railway for the analyst: one report, several truths behind it.

The same words of a tester fit a wrong comparison, a configured limit and a train that really is too long;
another report stops at a leg of a journey whose row, or whose script, may be missing. Nothing in here
is shared with the cases that other suites generate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources.session import Session
from viano_assets.case.intake import import_case
from viano_assets.phases.diagnosis.view import case_view
from viano_assets.phases.protocols import Phase

TOO_LONG = """# Train 731 is turned away from platform 3

## Environment
Rail server 4.2

## Observed
Train 731 waits outside and is refused at platform 3. The notice says the train is too long.

## Expected
A platform takes trains of up to 12 wagons, so train 731 with 12 wagons has to be let in.

## Steps
1. Put together train 731.
2. Send it to platform 3.
"""

STOPS = """# Linie 117 bleibt nach dem dritten Abschnitt stehen

## Beobachtet
Der Zug der Linie 117 fährt los, erreicht den dritten Halt und danach geschieht nichts mehr.
Vermutlich ist der Abfahrts-Hook nicht registriert.

## Erwartet
Nach dem dritten Halt fährt der Zug weiter zum vierten Halt wie bei den anderen Linien.

## Schritte
1. Linie 117 starten.
2. Bis zum dritten Halt mitfahren.
"""

VAGUE = """# Der Zug fährt manchmal nicht

## Beobachtet
Gestern ist der Zug einfach stehen geblieben. Danach ging es wieder.

## Erwartet
Er soll fahren.
"""

_ADMISSION = """#include "Admission.h"

namespace rail {

AdmissionResult Admission::Check(Train const& train, Platform const& platform) {
    int limit = settings.GetInt("Platform.MaxWagons", 12);
    if (platform.closed) {
        LOG_INFO("admission: train %d refused at platform %d, platform closed", train.id, platform.id);
        return AdmissionResult::Closed;
    }
    if (train.wagons @ limit) {
        LOG_INFO("admission: train %d refused at platform %d, %d wagons",
                 train.id, platform.id, train.wagons);
        return AdmissionResult::TooLong;
    }
    LOG_INFO("admission: train %d enters platform %d", train.id, platform.id);
    return AdmissionResult::Ok;
}

}
"""

_ROUTE = """#include "Route.h"
namespace rail {

bool Route::Advance(Journey& journey) {
    RouteStop const* stop = store.FindStop(journey.routeId, journey.leg + 1);
    if (!stop) {
        return false;
    }
    journey.leg = stop->leg;
    return true;
}

}
"""

_OTHER = (("signal", "lamp"), ("depot", "shift"), ("ticket", "fare"), ("crew", "roster"), ("boiler", "steam"))


def source(operator: str = ">", unregistered: int | None = None) -> dict[str, str]:
    """Return the server's source: how a platform compares, and which route's script is not registered."""
    files = {
        "src/platform/Admission.cpp": _ADMISSION.replace("@", operator),
        "src/route/Route.cpp": _ROUTE,
        "conf/rail.conf.dist": "# Longest train a platform takes\nPlatform.MaxWagons = 12\nLogLevel = info\n",
        "README.md": "# Rail server\nA simulator of a small railway.\n",
    }
    for topic, word in _OTHER:
        name = f"{topic.title()}{word.title()}"
        files[f"src/{topic}/{name}.cpp"] = (
            f"int {name}::Compute(int value) {{\n    if (value > base) {{\n        return base;\n    }}\n"
            f"    return value;\n}}\n"
        )
    numbers = [number for number in range(101, 131) if number != unregistered]
    lines = "\n".join(f'    registry.Add("route_script_{n}", new RouteScript{n}());' for n in numbers)
    files["src/route/Scripts.cpp"] = f"void RegisterRouteScripts(Registry& registry) {{\n{lines}\n}}\n"
    return files


def configuration(limit: int = 12) -> str:
    """Return the configuration in force."""
    return f"Platform.MaxWagons = {limit}\nLogLevel = info\n"


def log(wagons: int | None) -> str:
    """Return the server's log; the last line is the affected attempt, when it was logged."""
    lines = [
        f"2031-04-01 10:{n:02d}:00 INFO admission: train {400 + n} enters platform {1 + n % 5}"
        for n in range(60)
    ]
    if wagons is not None:
        lines.append(f"2031-04-01 11:00:05 INFO admission: train 731 refused at platform 3, {wagons} wagons")
    return "\n".join(lines) + "\n"


def dump(missing: tuple[int, int] | None = None, where: str = "") -> str:
    """Return the dump: 30 routes with four legs each but the missing one; `where` makes it an extract."""
    routes = ",\n".join(f"({n},'Route {n}',4,{1 + n % 3},'route_script_{n}')" for n in range(101, 131))
    stops = ",\n".join(
        f"({n},{leg},{n * 4 + leg})"
        for n in range(101, 131)
        for leg in range(1, 5)
        if (n, leg) != missing and (not where or 110 <= n <= 125)
    )
    note = f"-- WHERE:  {where}\n" if where else ""
    return (
        "-- MySQL dump 10.13\nCREATE TABLE `route` (\n `id` int NOT NULL,\n `name` varchar(60),\n"
        " `legs` int,\n `class` int,\n `script` varchar(40),\n PRIMARY KEY (`id`)\n);\n"
        f"INSERT INTO `route` VALUES {routes};\n"
        "CREATE TABLE `route_stop` (\n `route_id` int NOT NULL,\n `leg` int NOT NULL,\n"
        " `station_id` int,\n PRIMARY KEY (`route_id`,`leg`)\n);\n"
        f"{note}INSERT INTO `route_stop` VALUES {stops};\n-- Dump completed on 2031-04-02\n"
    )


def _write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def diagnosed(
    folder: Path, report: str, code: Mapping[str, str], diagnostics: Mapping[str, str]
) -> dict[str, Any]:
    """Import the case, run it through all phases with the offline provider and return its view."""
    home = folder / "home"
    written = _write(folder / "in", {"report.md": report})
    session = Session.open(home, provider="offline")
    import_case(
        session.store,
        case_id="RAIL",
        report=written / "report.md",
        source=_write(folder / "source", code),
        diagnostics=_write(folder / "diagnostics", diagnostics) if diagnostics else None,
    )
    asyncio.run(session.run("RAIL", until=Phase.DIAGNOSIS))
    head = session.store.latest("RAIL")
    assert session.verify("RAIL")["problems"] == []
    return dict(case_view(session.store, head, head.revision))
