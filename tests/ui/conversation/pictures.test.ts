// Pictures of an unsent message, and messages that are edited and sent again, in a real browser.

import { expect, test } from "vitest";
import { openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, CUT, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { openLine } from "../line.ts";
import { relayOf } from "../relay.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const file = (name: string, mimeType = "image/png") => ({
  name,
  mimeType,
  buffer: Buffer.from(PNG, "base64"),
});

/** Answers with the number of pictures in the message. */
const counts: Play = ({ run: { input } }) => `${input.images?.length ?? 0} pictures: ${input.text}`;

describeInBrowser("a message", () => {
  test("the composer accepts pictures that are picked, pasted or dropped, shows them, and sends them", async () => {
    const house = await openHouse({ play: counts });
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: AT },
        ...(viewport === undefined ? {} : { viewport }),
      });
      const field = page.getByRole("textbox", { name: "Message" });
      await field.waitFor();
      const pick = async (...files: ReturnType<typeof file>[]) => {
        const chooser = page.waitForEvent("filechooser");
        await page.getByRole("button", { name: "Add picture" }).click();
        await (await chooser).setFiles(files);
      };
      const give = (type: "paste" | "drop", name: string) =>
        field.evaluate(
          (element, { type, name, png }) => {
            const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name, { type: "image/png" }));
            const about = { bubbles: true, cancelable: true };
            element.dispatchEvent(
              type === "paste"
                ? new ClipboardEvent("paste", { ...about, clipboardData: transfer })
                : new DragEvent("drop", { ...about, dataTransfer: transfer }),
            );
          },
          { type, name, png: PNG },
        );
      await pick(file("notes.txt", "text/plain"));
      await page.getByText("notes.txt has an unsupported type.").waitFor();
      await pick(file("a.png"), file("b.png"));
      const shown = page.getByRole("list", { name: "Pictures" }).getByRole("img");
      await expect.poll(() => shown.count()).toBe(2);
      await expect.poll(() => page.getByText("notes.txt").count()).toBe(0);
      await give("paste", "c.png");
      await expect.poll(() => shown.count()).toBe(3);
      await give("drop", "d.png");
      await expect.poll(() => shown.count()).toBe(4);
      await page.getByRole("button", { name: "Remove b.png" }).click();
      expect(await shown.evaluateAll((found) => found.map((one) => one.getAttribute("alt")))).toEqual([
        ...["a.png", "c.png", "d.png"],
      ]);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByText("3 pictures:").last().waitFor();
      await expect.poll(() => shown.count()).toBe(0);
      const sent = page.locator(".entry-own").last();
      const seen = sent.getByRole("button", { name: /^Enlarge picture, image\/png, \d+ B$/ });
      await expect.poll(() => seen.count()).toBe(3);
      const widths = seen
        .locator("img")
        .evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth));
      expect(await widths).toEqual([1, 1, 1]);
    }
  });

  test("takes pictures that are dropped on the conversation; elsewhere a file does not replace the page", async () => {
    const house = await openHouse({ play: counts });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    /** Returns true if the page handles the event. If it does not, the browser opens the file. */
    const give = (at: string, type: "dragover" | "drop") =>
      page.locator(at).evaluate(
        (element, { type, png }) => {
          const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([bytes], "a.png", { type: "image/png" }));
          const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer });
          return !element.dispatchEvent(event);
        },
        { type, png: PNG },
      );
    expect(await give(".scroller", "dragover")).toBe(true);
    expect(await give(".scroller", "drop")).toBe(true);
    const shown = page.getByRole("list", { name: "Pictures" }).getByRole("img", { name: "a.png" });
    await shown.waitFor();
    expect(await give(".head", "dragover")).toBe(true);
    expect(await give(".head", "drop")).toBe(true);
    await expect.poll(() => shown.count()).toBe(1);
  });

  test("a picture that is added while a message is sent stays in the composer; files beyond its limit are not read", async () => {
    const house = await openHouse({ play: counts });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const relay = await relayOf(page, "chat.send");
    await page.reload();
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill("first");
    relay.hold();
    await field.press("Enter");
    await page.getByRole("button", { name: "Sending…" }).waitFor();
    const input = page.locator('input[type="file"]');
    await input.setInputFiles([file("late.png")]);
    const shown = page.getByRole("list", { name: "Pictures" }).getByRole("img");
    await shown.waitFor();
    relay.release();
    await page.getByText("0 pictures: first").waitFor();
    await expect.poll(() => field.inputValue()).toBe("");
    await expect.poll(() => shown.count()).toBe(1);
    await page.evaluate(() => {
      FileReader.prototype.readAsDataURL = () => console.error("a file was read");
    });
    await input.setInputFiles(Array.from({ length: 16 }, (_, n) => file(`${n}.png`)));
    await page.getByText("A message takes at most 16 pictures.").waitFor();
  });

  test("a message of a person can be edited and sent again, without losing the text in the field", async () => {
    const house = await openHouse({ play: counts });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "count them" }).done;
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const field = page.getByRole("textbox", { name: "Message" });
    const edit = page.getByRole("button", { name: "Edit message" });
    await edit.waitFor();
    await expect.poll(() => edit.count()).toBe(1);
    await edit.focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => field.inputValue()).toBe("count them");
    await page.keyboard.type(" all");
    await page.keyboard.press("Enter");
    await page.getByText("0 pictures: count them all").waitFor();
    await field.fill("first this");
    await edit.first().click();
    await expect.poll(() => field.inputValue()).toBe("first this\ncount them");
  });

  test("the pictures of a message are read once, one after the other; a large one is read in parts after a click", async () => {
    const house = await openHouse({ play: counts });
    const client = await house.client();
    // A browser ignores data after the end of a picture.
    const large = Buffer.concat([Buffer.from(PNG, "base64"), Buffer.alloc(2_000_000)]).toString("base64");
    const attachments = [PNG, PNG, large].map((content) => ({ mimeType: "image/png", content }));
    const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: "look", attachments });
    await client.request("agent.wait", { runId });
    const line = await openLine(house.port);
    const { page } = await visit(line.http, { token: TOKEN, at: AT, allow: CUT });
    const relay = await relayOf(page, "chat.image");
    relay.hold();
    await page.reload();
    const pictures = page.locator(".picture img");
    const widths = () =>
      pictures.evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth));
    await page.getByRole("button", { name: /^Show picture, image\/png, / }).waitFor();
    expect(relay.asked()).toBe(1);
    await expect.poll(() => relay.pass()).toBe(true);
    await expect.poll(widths).toEqual([1]);
    relay.release();
    await expect.poll(widths).toEqual([1, 1]);
    expect(relay.asked()).toBe(2);
    await page.getByRole("button", { name: /^Show picture/ }).click();
    await expect.poll(widths).toEqual([1, 1, 1]);
    expect(relay.asked()).toBe(4);
    line.cut();
    await client.agent({ sessionKey: MAIN, message: "and now" }).done;
    await page.getByText("0 pictures: and now").waitFor();
    expect(await widths()).toEqual([1, 1, 1]);
    expect(relay.asked()).toBe(4);
  });
});
