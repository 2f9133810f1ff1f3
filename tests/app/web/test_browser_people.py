"""Several people in browsers of their own: each answers under their own name, looks where that is all, and leaves."""

from __future__ import annotations

from playwright.sync_api import expect

from agcd.app.web.people import Role, add_person, remove_person
from support.browsers import PHONE, Site, answer, asked, toast


def test_two_people_label_at_once_one_looks_and_each_leaves_alone(site: Site) -> None:
    project, server = site.server.project, site.server
    ann, bob = (site.person(name, add_person(project, name, Role.LABEL)) for name in ("ann", "bob"))
    assert len({asked(ann), asked(bob), asked(site.page)}) == 3, "nobody gets the picture of another"
    expect(ann.locator("#strip-who")).to_have_text("ann")
    said = {"ann": {answer(ann, "2"), answer(ann, "1")}, "bob": {answer(bob, "1")}}
    assert {who: {each["row"] for each in server.pictures(who=who)} for who in said} == said

    site.allow("status of 40[13]")
    eve = site.person("eve", add_person(project, "eve", Role.VIEW), **PHONE)
    expect(eve.get_by_role("heading", name="You may look, but not label")).to_be_visible()
    eve.goto(f"{server.url}/review")
    eve.get_by_role("button", name="are right").tap()
    toast(eve, "eve may look but not label: this needs the role 'label'.")
    bob.goto(f"{server.url}/rounds")
    bob.get_by_role("button", name="Learn from my answers now").click()
    toast(bob, "bob may label but not manage the project: this needs the role 'manage'.")

    ann.get_by_role("button", name="Log out").click()
    expect(ann.get_by_text("You are logged out.")).to_be_visible()
    ann.goto(f"{server.url}/label")
    expect(ann.get_by_label("Password")).to_be_visible()
    bob.goto(f"{server.url}/label")
    asked(bob)
    remove_person(project, "bob")
    bob.goto(f"{server.url}/label")
    expect(bob.get_by_text("you are no longer among the people")).to_be_visible()
    asked(site.page)
